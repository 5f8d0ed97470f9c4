"""Sums over a whole batch that are added to a value of each sample."""

import pytest
import torch
from torch import nn

from tspec.runtime.live.losses.spread import spread_sums


def parts(batch: int = 4) -> tuple[torch.Tensor, torch.Tensor, nn.Linear]:
    """Errors `[batch, 3]` and means `[batch, 2]` that one layer gave."""
    layer = nn.Linear(3, 5)
    hidden = layer(torch.randn(batch, 3)).tanh()
    return hidden[:, :3].square(), hidden[:, 3:], layer


@pytest.mark.parametrize(
    ("loss", "found"),
    [
        (lambda e, m, _: (e.sum(1) - 0.5 * m.square().sum()).mean(), ["[4, 2] -> [4]"]),
        (lambda e, m, _: (m.exp().sum() + e.sum(1)).sum(), ["[4, 2] -> [4]"]),
        (lambda e, m, _: (e + m.square().sum()).mean(), ["[4, 2] -> [4, 3]"]),
        (lambda e, m, _: -(e.sum(1) - (m.sum() + m.square().sum())).mean() / 3, ["[4, 2] -> [4]"]),
        (lambda e, m, _: (e.sum(1) + (torch.zeros(4) + m.sum())).mean(), ["[4, 2] -> [4]"]),
        (lambda e, m, _: (e.sum(1) + m.square().sum(1)).mean(), []),
        (lambda e, m, _: (e.sum(1) + m.square().sum() / 4).mean(), []),
        (lambda e, m, _: (e.sum(1) + m.square().mean()).mean(), []),
        (lambda e, m, _: (e.sum(1) + 0.01 * m.square().sum()).mean(), []),  # a penalty
        (lambda e, m, _: e.sum(1).mean() + m.square().sum(), []),  # weighed on purpose
        (lambda e, m, layer: (e.sum(1) + layer.weight[:4].square().sum()).mean(), []),
        (lambda e, m, layer: (e.sum(1) + layer.bias[:4].exp().sum()).mean(), []),  # of no sample
    ],
)
def test_sums_over_the_batch_that_count_once_for_each_sample(loss, found: list[str]) -> None:
    assert spread_sums(loss(*parts())) == found


def test_one_sample_is_its_own_sum() -> None:
    errors, means, _ = parts(1)
    assert spread_sums((errors.sum(1) + means.sum()).mean()) == []
