"""Labels of samples that are compared with the matches of all samples of their batch."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tspec.runtime.live.losses.matches import in_order_of_matches

SIZE = 9
ORDER = torch.arange(SIZE)
SCALE = nn.Parameter(torch.tensor(2.0))


def two(size: int = SIZE) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return nn.Linear(4, 6)(torch.randn(size, 4)), nn.Linear(4, 6)(torch.randn(size, 4))


SCORES = {
    "product": lambda x, y: x @ y.T,
    "scaled": lambda x, y: F.normalize(x) @ F.normalize(y).t() / 0.1,
    "learned scale": lambda x, y: SCALE.exp() * x @ y.T,
    "scaled last": lambda x, y: (x @ y.T) * SCALE.exp(),
    "other direction": lambda x, y: (x @ y.T).T,
    "two views": lambda x, y: (lambda a, b: a @ b.T)(*torch.stack([x, y])),
}


@pytest.mark.parametrize("name", SCORES)
def test_labels_of_products_of_two_tensors(name: str) -> None:
    scores = SCORES[name](*two())
    assert in_order_of_matches(scores, ORDER) is True
    assert in_order_of_matches(scores, ORDER.flip(0)) is False
    assert in_order_of_matches(scores, torch.zeros_like(ORDER)) is False
    assert in_order_of_matches(scores, ORDER // 2) is None


OTHERS = {
    "with itself": lambda x, y: (lambda z: z @ z.T)(x + y),
    "classifier": lambda x, y: F.linear(x, nn.Parameter(torch.randn(SIZE, 6))),
    "chosen rows": lambda x, y: (x @ y.T)[ORDER.flip(0)],
    "constants": lambda x, y: x @ y.detach().T,
    "queue": lambda x, y: torch.cat([(x * y).sum(1, keepdim=True), (x @ y.T)[:, 1:]], 1),
    "bias": lambda x, y: F.linear(x, nn.Parameter(torch.randn(SIZE, 6)), torch.zeros(SIZE)),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_logits_are_left_out(name: str) -> None:
    assert in_order_of_matches(OTHERS[name](*two()), ORDER.flip(0)) is None


def test_few_samples_and_other_labels_are_left_out() -> None:
    x, y = two(7)
    assert in_order_of_matches(x @ y.T, torch.arange(7).flip(0)) is None
    x, y = two()
    assert in_order_of_matches(x @ y.T, torch.rand(SIZE, SIZE)) is None
    assert in_order_of_matches(x @ y[:8].T, ORDER) is None
