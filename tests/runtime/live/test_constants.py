"""Terms of losses that have no graph."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch.nn import functional as F

from tspec.runtime.live.losses.constants import LEAST, ConstantTerms

TERMS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "added": lambda term, constant: term + constant,
    "from the left": lambda term, constant: 0.5 * constant + term,
    "taken away": lambda term, constant: 2 * term - constant.item(),
    "before a division": lambda term, constant: (term + constant) / 4,
    "with a factor": lambda term, constant: torch.add(term, constant, alpha=3),
    "of a negative": lambda term, constant: -(constant - term),
}


def varies(loss_of: Callable[[torch.Tensor, int], torch.Tensor], steps: int = LEAST) -> bool | None:
    """What is said of the last of several losses, which a loss function's result goes into."""
    constants = ConstantTerms()
    torch.manual_seed(0)
    weight = torch.randn(8, 3, requires_grad=True)
    found = None
    for step in range(steps):
        term = F.mse_loss(torch.randn(16, 8) @ weight, torch.zeros(16, 3))
        assert constants.is_known_term(term)
        found = constants.constant_varies(loss_of(term, step))
    return found


@pytest.mark.parametrize("form", TERMS)
def test_a_constant_that_is_another_number_in_each_loss_varies(form: str) -> None:
    of = TERMS[form]
    assert varies(lambda term, step: of(term, torch.tensor(float(step)))) is True
    assert varies(lambda term, step: of(term, torch.tensor(5.0))) is False


def test_the_first_losses_tell_nothing() -> None:
    assert varies(lambda term, step: term + torch.tensor(float(step)), LEAST - 1) is None


def test_losses_that_are_not_known_whole() -> None:
    other = torch.randn(4, requires_grad=True)
    assert varies(lambda term, step: term) is None
    assert varies(lambda term, step: term + other.square().sum() + torch.tensor(1.0)) is None
    assert varies(lambda term, step: term * other.sum() + torch.tensor(1.0)) is None
    assert varies(lambda term, step: term + torch.tensor(float("inf"))) is None
    assert varies(lambda term, step: (term + torch.ones(2)).sum()) is None


def test_losses_of_different_terms_are_not_compared() -> None:
    constants = ConstantTerms()
    weight = torch.randn(8, 3, requires_grad=True)
    for step in range(2 * LEAST):
        outputs = torch.randn(16, 8) @ weight
        of = F.mse_loss if step % 2 else F.l1_loss
        term = of(outputs, torch.zeros(16, 3))
        assert constants.is_known_term(term)
        found = constants.constant_varies(term + torch.tensor(7.0 if step % 2 else 3.0))
    assert found is False


def test_results_that_are_no_single_numbers_with_a_graph() -> None:
    constants = ConstantTerms()
    values = torch.randn(4, requires_grad=True)
    assert not constants.is_known_term(values.square())
    assert not constants.is_known_term(values.square().sum().detach())
    assert not constants.is_known_term(None)
