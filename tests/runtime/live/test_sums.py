"""The constants by which a loss and its terms are multiplied."""

import pytest
import torch

from tspec.runtime.live.losses.sums import factor_of_all, is_average, is_multiplied_by_zero

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


def test_averages_and_sums_of_averages() -> None:
    logits, labels = torch.randn(8, 5, requires_grad=True), torch.arange(8) % 5
    cross_entropy = torch.nn.functional.cross_entropy
    mean, smoothed = (
        cross_entropy(logits, labels),
        cross_entropy(logits, labels, label_smoothing=0.1),
    )
    assert is_average(mean / 4) and is_average(smoothed) and is_average(mean + 0.1 * X.mean())
    for reduction in ({}, {"label_smoothing": 0.1}):
        assert not is_average(cross_entropy(logits, labels, reduction="sum", **reduction))
    assert not is_average(mean + X.sum())
    assert not is_average(X.sum()) and not is_average(torch.ones(()))
