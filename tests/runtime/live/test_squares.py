"""Squared errors of each with each."""

import pytest
import torch

from tspec.runtime.live.losses.squares import stretched_squares


def huber(error: torch.Tensor) -> torch.Tensor:
    return torch.where(error.abs() < 1, 0.5 * error**2, error.abs() - 0.5)


@pytest.mark.parametrize(
    ("loss", "stretched"),
    [
        (lambda x: (x - torch.ones(4)).pow(2).mean(), True),
        (lambda x: ((torch.ones(4) - x) ** 2).sum(), True),
        (lambda x: torch.square(x - torch.ones(4)).mean() * 0.5 + x.sum(), True),
        (lambda x: (lambda error: (error * error).mean())(x - torch.ones(4)), True),
        (lambda x: huber(x - torch.ones(4)).mean(), True),
        (lambda x: huber(x - torch.ones(4, 1)).mean(), False),
        (lambda x: (x - torch.ones(4, 1)).pow(2).mean(), False),
        (lambda x: (x.squeeze(1) - torch.ones(4)).pow(2).mean(), False),
        (lambda x: (x - torch.ones(3)).pow(2).mean(), False),  # each with three quantiles
        (lambda x: (x - x.t()).pow(2).mean(), False),  # how far apart predictions are
        (lambda x: (x - torch.ones(4)).pow(2).neg().exp().mean(), False),  # a kernel
        (lambda x: (x - torch.ones(4)).pow(3).mean(), False),
        (lambda x: (x - torch.ones(4)).abs().mean(), False),  # an energy distance
    ],
)
def test_columns_that_are_stretched_to_squared_differences(loss, stretched: bool) -> None:
    found = stretched_squares(loss(torch.randn(4, 1, requires_grad=True)))
    assert found == (["[4, 1] -> [4, 4]"] if stretched else [])


@pytest.mark.parametrize(
    ("loss", "stretched"),
    [
        (lambda x: (x.squeeze(1) - torch.ones(4, 1)).pow(2).mean(), True),
        (lambda x: (torch.ones(4, 1) - x[:, 0]).pow(2).mean(), True),
        (lambda x: (x.view(-1) - torch.ones(4, 1)).pow(2).mean(), True),
        (lambda x: (x.t().squeeze(0) - torch.ones(4, 4)).pow(2).mean(), False),
        (lambda x: (x.squeeze(1) - torch.ones(3, 1)).pow(2).mean(), False),
    ],
)
def test_rows_that_are_stretched_to_squared_differences(loss, stretched: bool) -> None:
    found = stretched_squares(loss(torch.randn(4, 1, requires_grad=True)))
    assert found == (["[4] -> [4, 4]"] if stretched else [])


def test_a_learned_row_lies_beside_each_sample() -> None:
    means = torch.zeros(4, requires_grad=True)
    assert stretched_squares((torch.ones(4, 4) - means).square().mean()) == []
