"""Products of what was divided by norms are told by the dimension of the norms."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tspec.runtime.live.losses.similarities import blunt_similarities, crossed_norms

TEMPERATURE = nn.Parameter(torch.tensor(0.1))
CROSSED = {
    "normalize": lambda x, y: F.normalize(x, dim=0) @ F.normalize(y, dim=0).T,
    "one of both": lambda x, y: F.normalize(x, dim=0) @ F.normalize(y, dim=1).T,
    "the other one": lambda x, y: F.normalize(x, dim=1) @ F.normalize(y, dim=0).T,
    "norm": lambda x, y: (x / x.norm(dim=0, keepdim=True)) @ (y / y.norm(dim=0, keepdim=True)).t(),
    "norm of one dimension less": lambda x, y: (x / x.norm(dim=0)[None]) @ F.normalize(y, dim=0).T,
    "with itself": lambda x, y: (lambda z: z @ z.T)(F.normalize(torch.cat([x, y]), dim=0)),
    "two views": lambda x, y: (lambda z: z @ z.T)(
        torch.cat([F.normalize(x, dim=0), F.normalize(y, dim=0)])
    ),
    "temperature": lambda x, y: F.normalize(x, dim=0) / TEMPERATURE @ F.normalize(y, dim=0).T,
    "einsum": lambda x, y: torch.einsum("nd,md->nm", F.normalize(x, dim=0), F.normalize(y, dim=0)),
    "places of sequences": lambda x, y: (lambda z: z @ z.transpose(1, 2))(
        F.normalize(x.view(4, 3, 2))
    ),
}
STRAIGHT = {
    "normalize": lambda x, y: F.normalize(x, dim=1) @ F.normalize(y, dim=1).T,
    "two views": lambda x, y: (lambda z: z @ z.T)(torch.cat([F.normalize(x), F.normalize(y)])),
    "joined features": lambda x, y: (lambda z: z @ z.T)(
        torch.cat([F.normalize(x, dim=0), F.normalize(y, dim=0)], dim=1)
    ),
    "linear": lambda x, y: F.linear(F.normalize(x), F.normalize(y)),
    "temperature": lambda x, y: TEMPERATURE.exp() * F.normalize(x) @ F.normalize(y).T,
    "features over the batch": lambda x, y: F.normalize(x, dim=0).T @ F.normalize(y, dim=0),
    "sequences": lambda x, y: (lambda z: z @ z.mT)(F.normalize(x.view(4, 3, 2), dim=-1)),
    "one side": lambda x, y: F.normalize(x, dim=0) @ y.T,
    "no norm": lambda x, y: (x / x.sum(0, keepdim=True)) @ (y / y.sum(0, keepdim=True)).T,
    "all elements": lambda x, y: (x / x.norm()) @ (y / y.norm()).T,
    "norms of another": lambda x, y: (x / y.norm(dim=0)) @ (y / x.norm(dim=0)).T,
}


def product(of):
    x, y = (torch.randn(4, 6, requires_grad=True) for _ in range(2))
    return of(x * 2, y * 2).sum()


@pytest.mark.parametrize("name", CROSSED)
def test_norms_of_another_dimension_are_found(name):
    assert len(crossed_norms(product(CROSSED[name]))) == 1


@pytest.mark.parametrize("name", STRAIGHT)
def test_norms_of_what_is_summed_over_are_right(name):
    assert crossed_norms(product(STRAIGHT[name])) == []


def test_parameters_may_be_divided_by_the_norms_of_their_columns():
    left, right = nn.Parameter(torch.randn(4, 2)), nn.Parameter(torch.randn(2, 6))
    assert crossed_norms((F.normalize(left, dim=0) @ F.normalize(right, dim=1)).sum()) == []


def scores(of):
    x, y = (F.normalize(torch.randn(9, 6, requires_grad=True) * 2, dim=1) for _ in range(2))
    return F.cross_entropy(of(x @ y.T), torch.arange(9))


def without_diagonal(products):
    return (products * 0.2).fill_diagonal_(float("-inf"))


@pytest.mark.parametrize(
    "of",
    [
        lambda s: s * 0.2,
        lambda s: s / 5,
        lambda s: (s * 0.2).masked_fill(torch.eye(9) > 0, -1e4),
        lambda s: torch.cat([s * 0.2, s * 0.2], 1),
    ],
)
def test_similarities_that_are_made_smaller(of):
    assert blunt_similarities(scores(of)) == [pytest.approx(0.2)]


def test_similarities_without_the_diagonal():
    x = torch.randn(9, 6, requires_grad=True)
    z = F.normalize(x * 2, dim=1)
    loss = F.cross_entropy(without_diagonal(z @ z.T), torch.arange(9).flip(0))
    assert blunt_similarities(loss) == [pytest.approx(0.2)]


@pytest.mark.parametrize(
    "of",
    [
        lambda s: s / 0.2,
        lambda s: s * 5,
        lambda s: s,
        lambda s: s * TEMPERATURE,
        lambda s: s / TEMPERATURE.exp(),
    ],
)
def test_similarities_that_are_made_larger_or_scaled_as_is_learned(of):
    assert blunt_similarities(scores(of)) == []


def test_other_scores_may_be_made_smaller():
    x, y = (torch.randn(9, 6, requires_grad=True) for _ in range(2))
    assert blunt_similarities(F.cross_entropy(x @ y.T * 0.2, torch.arange(9))) == []
    assert blunt_similarities((F.normalize(x * 2) @ F.normalize(y * 2).T * 0.2).sum()) == []
