"""Preconditions are safe, keep every instance that one conjunction can keep, and hold nothing idle."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tspec.infer.preconditions import Condition, deduce

INSTANCES = 24
sets = st.integers(min_value=0, max_value=2**INSTANCES - 1)
conditions = st.lists(sets, max_size=6).map(
    lambda masks: [Condition(f"c{i}", mask) for i, mask in enumerate(masks)]
)


def test_what_always_holds_needs_no_condition() -> None:
    found = deduce(0b1111, 0, [Condition("c", 0b0011)])
    assert found is not None
    assert found.under() is None
    assert found.true == 0b1111


def test_one_condition_that_separates_is_found_and_the_others_are_pruned() -> None:
    everywhere, separating = Condition("always", 0xFFFF), Condition("p.requires_grad", 0x00FF)
    found = deduce(0x00FF, 0xFF00, [everywhere, separating])
    assert found is not None
    assert found.under() == "p.requires_grad"


def test_two_conditions_are_joined_where_neither_is_enough() -> None:
    a, b = Condition("a", 0b1110), Condition("b", 0b1101)
    found = deduce(0b1100, 0b0011, [a, b])
    assert found is not None
    assert found.under() == "a and b"


def test_what_remains_is_told_apart_by_alternatives() -> None:
    half, other = Condition("train", 0x001F), Condition("autocast", 0x03E0)
    found = deduce(0x03FF, 0x0C00, [half, other])
    assert found is not None
    assert found.under() == "train or autocast"
    assert found.true == 0x03FF


def test_without_a_separating_condition_there_is_no_rule() -> None:
    assert deduce(0b11, 0b1100, [Condition("always", 0b1111)]) is None


def test_a_coincidence_is_no_alternative() -> None:
    assert deduce(0xFFFF, 0xF0000, [Condition("rare", 0b111)]) is None


@given(sets, sets, conditions)
def test_a_precondition_never_selects_a_violation(
    holds: int, violated: int, tried: list[Condition]
) -> None:
    violated &= ~holds
    found = deduce(holds, violated, tried)
    if found is not None:
        assert not found.true & violated
        assert not found.true & ~(holds | violated)


@given(sets, sets, conditions)
def test_conjuncts_alone_lose_no_instance_where_the_claim_holds(
    holds: int, violated: int, tried: list[Condition]
) -> None:
    found = deduce(holds, violated & ~holds, tried)
    if found is not None and not found.alternatives:
        assert found.true & holds == holds
