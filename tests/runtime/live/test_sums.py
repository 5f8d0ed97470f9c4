"""The constants by which a loss and its terms are multiplied."""

import pytest
import torch

from tspec.runtime.live.losses.sums import factor_of_all, is_multiplied_by_zero

X = torch.tensor([1.0, 2.0], requires_grad=True)
WEIGHT = torch.tensor(3.0, requires_grad=True)


@pytest.mark.parametrize(
    ("loss", "factor"),
    [
        (lambda: X.sum(), 1),
        (lambda: X.mean() + 0.1 * X.square().mean(), 1),
        (lambda: (X.mean() + X.sum()) / 4, 0.25),
        (lambda: 0.5 * (X.sum() / 4), 0.125),
        (lambda: X.sum() * torch.tensor(65536.0), 65536),
        (lambda: (2 * X).sum(), 1),
        (lambda: X.sum() * WEIGHT, None),
        (lambda: X * torch.tensor([1.0, 2.0]), None),
    ],
)
def test_a_loss_has_the_factor_of_its_last_products(loss, factor: float | None) -> None:
    assert factor_of_all(loss()) == factor
    assert factor_of_all([loss()]) == factor


def test_several_losses_have_none() -> None:
    assert factor_of_all((X.sum(), X.mean())) is None
    assert factor_of_all(torch.ones(())) is None


def test_a_term_that_is_multiplied_by_zero() -> None:
    assert is_multiplied_by_zero((0 * X.sum()).grad_fn)
    assert is_multiplied_by_zero((torch.zeros((), dtype=torch.int64) * X.sum()).grad_fn)
    assert not is_multiplied_by_zero((0.0 * X.sum()).grad_fn)  # switched off
    assert not is_multiplied_by_zero((0.1 * X.sum()).grad_fn)
    assert not is_multiplied_by_zero((X * torch.zeros(2)).grad_fn)
    assert not is_multiplied_by_zero((X.sum() * WEIGHT).grad_fn)
