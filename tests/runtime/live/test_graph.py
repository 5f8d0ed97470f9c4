"""What the graph of a loss says: which dimension softmaxes sum over, and what computed a tensor."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from tspec.runtime.live.losses.graph import (
    made_by,
    over_classes,
    over_labels,
    softmax_dims,
    unscaled_scores,
)


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(shape, requires_grad=True)


Q, K, V = (drawn(2, 3, 5, 4) for _ in range(3))
SCORES = Q @ K.transpose(-2, -1)


@pytest.mark.parametrize("dim", [-1, -2, 1, 0])
@pytest.mark.parametrize(
    "weigh",
    [
        lambda a: a @ V,
        lambda a: torch.matmul(F.dropout(a, 0.1), V),
        lambda a: torch.bmm(a.flatten(0, 1), V.flatten(0, 1)),
        lambda a: torch.einsum("bhqk,bhkd->bhqd", a, V),
        lambda a: torch.einsum("bhqk,bkhd->bqhd", a, V.transpose(1, 2)),
        lambda a: a.masked_fill(torch.ones(5, 5).triu(1).bool(), 0) @ V,
        lambda a: V.transpose(-2, -1) @ a.transpose(-2, -1),
        lambda a: a.bfloat16() @ V.bfloat16(),
        lambda a: a.nan_to_num(0.0) @ V,
    ],
)
def test_the_dimension_of_attention(dim: int, weigh) -> None:
    loss = weigh(torch.softmax(SCORES, dim)).sum()
    assert softmax_dims(loss) == [dim % 4 - 4]


@pytest.mark.parametrize(
    "product",
    [
        lambda: F.softmax(drawn(2, 9, 4), -1).transpose(1, 2) @ drawn(2, 9, 6),
        lambda: F.softmax(drawn(2, 4, 9), 1) @ drawn(2, 9, 6),
        lambda: F.softmax(drawn(5, 5), 0) @ drawn(5, 2),
        lambda: (s := F.softmax(SCORES, -2)) / s.sum(-1, keepdim=True) @ V,
        lambda: (F.softmax(SCORES, -1) * F.softmax(SCORES, -2)) @ V,
        lambda: K.softmax(-2).transpose(-2, -1) @ V,
        lambda: F.scaled_dot_product_attention(Q, K, V),
        lambda: F.linear(F.softmax(drawn(6, 8), 1), drawn(3, 8)),
    ],
    ids=[
        "pooling", "clusters first", "one matrix", "normalised after", "both ways", "linear attention", "fused",
        "layer",
    ],
)  # fmt: skip
def test_other_products_of_softmaxes(product) -> None:
    assert softmax_dims(product().sum()) == []


STEP, MEMORY = drawn(6, 4), drawn(6, 9, 4)


@pytest.mark.parametrize(
    "weigh",
    [
        lambda a: torch.bmm(a.unsqueeze(1), MEMORY),
        lambda a: torch.bmm(MEMORY.transpose(1, 2), a.unsqueeze(2)),
        lambda a: torch.einsum("bs,bsd->bd", a, MEMORY),
    ],
)
def test_a_softmax_over_the_batch_is_found_in_the_attention_of_one_step(weigh) -> None:
    scores = torch.bmm(MEMORY, STEP.unsqueeze(-1)).squeeze(-1)
    assert softmax_dims(weigh(F.softmax(scores, 0)).sum()) == [-2]
    assert softmax_dims(weigh(F.softmax(scores, 1)).sum()) == []


PROJECT = drawn(4, 12)
X = drawn(2, 5, 4)


def heads(projected: torch.Tensor) -> list[torch.Tensor]:
    """Queries, keys and values of two heads."""
    return [part.view(2, 5, 2, 2).transpose(1, 2) for part in projected.split(4, 2)]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        (lambda q, k: q @ k.transpose(-2, -1), 1),
        (lambda q, k: (q @ k.transpose(-2, -1)).masked_fill(torch.ones(5, 5).triu(1) > 0, -1e9), 1),
        (lambda q, k: q @ k.transpose(-2, -1) + torch.zeros(5, 5), 1),
        (lambda q, k: torch.einsum("bhqd,bhkd->bhqk", q, k), 1),
        (lambda q, k: q @ k.transpose(-2, -1) / 2**0.5, 0),
        (lambda q, k: (q @ k.transpose(-2, -1) * 2**-0.5).masked_fill(torch.ones(5, 5) < 0, 0), 0),
        (lambda q, k: (q * 2**-0.5) @ k.transpose(-2, -1), 0),
        (lambda q, k: F.normalize(q, dim=-1) @ k.transpose(-2, -1), 0),
        (lambda q, k: F.layer_norm(q, (2,)) @ F.layer_norm(k, (2,)).transpose(-2, -1), 0),
    ],
)
def test_scores_that_nothing_scales(scores, expected: int) -> None:
    q, k, v = heads(X @ PROJECT)
    loss = (scores(q, k).softmax(-1) @ v).sum()
    assert unscaled_scores(loss) == expected


def test_layers_of_torch_scale_their_scores() -> None:
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    x = drawn(2, 5, 8)
    assert unscaled_scores(layer(x, x, x)[0].sum()) == 0


def test_nothing_is_computed_again() -> None:
    calls = []

    def attend(scores: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return scores.softmax(-2) @ V

    loss = checkpoint(attend, SCORES, use_reentrant=False).sum()
    assert softmax_dims(loss) == [-2]
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (lambda x: x.softmax(1), "softmax"),
        (lambda x: x.log_softmax(1)[:3], "log_softmax"),
        (lambda x: x.sigmoid().view(-1).squeeze(), "sigmoid"),
        (lambda x: x.relu_().transpose(0, 1).bfloat16(), "relu"),
        (lambda x: F.dropout(x.relu(), 0.5), "mul"),
        (lambda x: F.linear(x, torch.ones(3, 4), torch.ones(3)), "addmm"),
        (lambda x: x.detach().softmax(1), ""),
    ],
)
def test_what_made_a_tensor(value, name: str) -> None:
    assert made_by(value(drawn(6, 4) * 2)) == name
    assert made_by(drawn(2)) == ""


@pytest.mark.parametrize(
    ("value", "sums"),
    [
        (lambda: drawn(6, 4).log_softmax(1), True),
        (lambda: drawn(6, 4).log_softmax(0), False),
        (lambda: drawn(6, 4).log_softmax(0)[torch.arange(3)], False),
        (lambda: drawn(6, 4).log_softmax(-1)[1:].bfloat16(), True),
        (lambda: drawn(2, 3, 4).log_softmax(-1).flatten(0, 1), True),
        (lambda: drawn(2, 3, 4).log_softmax(1).flatten(0, 1), False),
        (lambda: drawn(2, 3, 4).log_softmax(2).transpose(1, 2), True),
        (lambda: drawn(2, 4, 3, 3).log_softmax(1), True),
        (lambda: drawn(6, 4).softmax(0).log(), None),
        (lambda: torch.cat([drawn(2, 4).log_softmax(1), drawn(2, 4).log_softmax(1)]), None),
        (lambda: torch.zeros(6, 4).log_softmax(0), None),
    ],
)
def test_whether_likelihoods_sum_over_classes(value, sums: bool | None) -> None:
    assert over_classes(value()) is sums


@pytest.mark.parametrize(
    ("value", "sums"),
    [
        (lambda: drawn(5, 2, 4).log_softmax(2), True),
        (lambda: drawn(2, 5, 4).log_softmax(-1).transpose(0, 1), True),
        (lambda: drawn(2, 4, 5).log_softmax(1).permute(2, 0, 1), True),
        (lambda: drawn(5, 2, 4).log_softmax(1), False),
        (lambda: drawn(5, 4).log_softmax(0), False),
        (lambda: drawn(5, 2, 4), None),
    ],
)
def test_whether_alignments_sum_over_labels(value, sums: bool | None) -> None:
    assert over_labels(value()) is sums
