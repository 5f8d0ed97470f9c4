"""Terms of a loss that were cut off, or are subtracted."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from tspec.runtime.live.losses.terms import PASSES, TERMS, WITHOUT_GRAPH, LossTerms

Sum = Callable[[Tensor, Tensor], Tensor]


class Turns:
    """Updates, each from one pass over a sum of a cross entropy and a squared error."""

    def __init__(self) -> None:
        self.has_passed = False
        self.terms = LossTerms(lambda: self.has_passed)
        self.output = torch.randn(8, 4, requires_grad=True)

    def passes(self, loss: Tensor) -> tuple[list[str] | None, list[str] | None]:
        found = self.terms.left_out(loss), self.terms.negated(loss)
        loss.backward()
        self.has_passed = True
        return found

    def two_terms(self) -> tuple[Tensor, Tensor]:
        self.has_passed = False
        terms = (
            F.cross_entropy(self.output, torch.arange(8) % 4),
            F.mse_loss(self.output, torch.ones(8, 4)),
        )
        assert all(self.terms.is_term(each) for each in terms)
        return terms

    def turn(self, add: Sum) -> tuple[list[str] | None, list[str] | None]:
        return self.passes(add(*self.two_terms()))


SOUND: dict[str, Sum] = {
    "added": lambda a, b: a + 0.5 * b,
    "sum": lambda a, b: sum([a, b]),  # type: ignore[return-value]
    "stacked": lambda a, b: torch.stack([a, b]).mean(),
    "weighed": lambda a, b: torch.exp(-torch.ones((), requires_grad=True)) * a + b / 2,
    "only printed": lambda a, b: a,
    "a constant": lambda a, b: 1 + a + b,
    "subtracted from": lambda a, b: a - (1 - b),
}
CUT: dict[str, Sum] = {
    "detached": lambda a, b: a + 0.5 * b.detach(),
    "a number": lambda a, b: a + b.item(),
    "stacked": lambda a, b: torch.stack([a, b.detach()]).sum(),
}
SUBTRACTED: dict[str, Sum] = {
    "minus": lambda a, b: a - b,
    "weighed": lambda a, b: a + -0.5 * b,
    "of a difference": lambda a, b: a + (1 - b),
    "divided": lambda a, b: a + b / torch.tensor(-2.0),
}


@pytest.mark.parametrize("kind", SOUND)
def test_terms_that_are_trained_are_not_accused(kind: str) -> None:
    turns = Turns()
    assert {str(turns.turn(SOUND[kind])) for _ in range(3)} == {"([], [])"}


@pytest.mark.parametrize("kind", CUT)
def test_a_term_that_is_cut_off_is_left_out_of_the_update_before(kind: str) -> None:
    turns = Turns()
    assert turns.turn(CUT[kind]) == ([], [])
    assert turns.turn(CUT[kind]) == (["mse_loss"], [])
    assert turns.turn(SOUND["added"]) == (["mse_loss"], [])
    assert turns.turn(SOUND["added"]) == ([], [])


@pytest.mark.parametrize("kind", SUBTRACTED)
def test_a_term_that_is_subtracted(kind: str) -> None:
    assert Turns().turn(SUBTRACTED[kind]) == ([], ["mse_loss"])


def test_each_term_may_have_a_pass_of_its_own() -> None:
    turns = Turns()
    for _ in range(3):
        first, second = turns.two_terms()
        assert turns.passes(1 + first) == ([], [])
        assert turns.passes(1 + second) == ([], [])


def test_a_term_of_detached_tensors_is_left_out() -> None:
    turns = Turns()
    for found in ([], [WITHOUT_GRAPH]):
        first, second = turns.two_terms()
        constant = F.mse_loss(turns.output.detach(), torch.ones(8, 4))
        assert not turns.terms.is_term(constant)
        assert turns.passes(first + second + constant) == (found, [])


def test_losses_without_gradients_do_not_count() -> None:
    turns = Turns()
    for _ in range(3):
        with torch.no_grad():
            assert not turns.terms.is_term(F.mse_loss(turns.output, torch.ones(8, 4)))
        assert turns.turn(SOUND["a constant"]) == ([], [])
    assert not turns.terms.is_term(None)


def test_later_updates_are_not_read() -> None:
    turns = Turns()
    for _ in range(PASSES + 1):
        turns.turn(CUT["detached"])
    assert turns.turn(SUBTRACTED["minus"]) == (None, None)


def test_terms_that_no_pass_reaches_are_not_kept_without_bound() -> None:
    turns = Turns()
    for _ in range(TERMS):
        turns.two_terms()
    assert len(turns.terms._open) == TERMS
