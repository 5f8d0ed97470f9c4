"""Which changes are made of a rule, and which count."""

from __future__ import annotations

import pytest

from tests.testing.specs import program
from tspec.testing.mutants import Mutant, mutants
from tspec.testing.mutate import MutationResult, mutate


def changes(body: str) -> list[Mutant]:
    """The mutants of one rule."""
    (rule,) = program(f"invariant r {{\n{body}\n  else warn\n}}\n").rules
    return list(mutants(rule))


def diffs(body: str) -> set[tuple[str, str, str]]:
    return {(each.kind, each.before, each.after) for each in changes(body)}


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("each step when step > 1 and loss > 2 expect loss < 3", ("drop", "step > 1", "nothing")),
        ("each step when step > 1 expect loss < 3", ("drop", "step > 1", "nothing")),
        ("each step expect loss < 3 or step == 1", ("drop", "step == 1", "nothing")),
        ("each step expect loss < 3 or step == 1", ("negate", "step == 1", "not step == 1")),
        ("each step expect not loss < 3", ("negate", "not loss < 3", "loss < 3")),
        ("each step expect loss < 3.0", ("bound", "loss < 3", "loss <= 3")),
        ("each step expect loss < 3.0", ("threshold", "loss < 3", "loss < 6")),
        ("each step expect step == 3", ("threshold", "step == 3", "step == 2")),
        (
            "each step expect loss < 3.0 or step == 1",
            ("junction", "loss < 3 or step == 1", "loss < 3 and step == 1"),
        ),
        (
            "each step expect any(loss < 3.0, over: 4 steps)",
            ("fold", "any(loss < 3, over: 4 steps)", "all(loss < 3, over: 4 steps)"),
        ),
        (
            "each step expect any(loss < 3.0, over: 4 steps)",
            ("horizon", "any(loss < 3, over: 4 steps)", "any(loss < 3, over: 2 steps)"),
        ),
        ("each step expect loss <= old(loss)", ("look-back", "old(loss)", "loss")),
        ("each step expect loss <= previous(loss)", ("look-back", "previous(loss)", "loss")),
        ("each step every 5 steps expect loss < 3", ("window", "every 5 steps", "every 10 steps")),
        ("each step every 5 steps expect loss < 3", ("window", "every 5 steps", "without")),
        ("before save once expect loss < 3", ("window", "once", "without")),
        ("across dp each step expect same(loss)", ("group", "across dp", "across tp")),
        (
            "each step expect backward before optimizer.step",
            ("order", "backward before optimizer.step", "optimizer.step before backward"),
        ),
    ],
)
def test_a_change(body: str, expected: tuple[str, str, str]) -> None:
    assert expected in diffs(body)


def test_finite_is_one_condition() -> None:
    assert {(e.kind, e.after) for e in changes("each step expect finite(loss)")} == {
        ("negate", "not finite(loss)")
    }


def test_changes_come_in_one_order_and_each_once() -> None:
    body = "each step when step > 1 and step > 2 expect loss < 3 or loss > 5 and step == 4"
    assert changes(body) == changes(body)


SPEC = """
invariant doubled {
  each step
  when step > 1 and step >= 2
  expect loss < 3.0
  else warn
}

test "a large loss" {
  events {
    step 1 { loss = 5.0 }
    step 2 { loss = 2.9 }
    step 3 { loss = 3.0 }
  }
  violates doubled at step 3
}
"""


def mutated(text: str) -> MutationResult:
    found = program(text)
    return mutate(found, found.rules)


def test_what_is_proved_to_say_the_same_does_not_count() -> None:
    found = mutated(SPEC)
    (rule,) = found.rules
    assert rule.equivalent >= 2
    assert "step > 1" not in {each.before for each in rule.survivors if each.kind == "drop"}
    assert found.total == rule.mutants - rule.equivalent


def test_a_test_that_fails_notices_nothing() -> None:
    sound, failing = mutated(SPEC), mutated(SPEC.replace("at step 3", "at step 2"))
    assert sound.noticed > 0
    assert failing.noticed == 0 and failing.rules[0].tests == 0


def test_mutating_again_gives_the_same() -> None:
    assert mutated(SPEC) == mutated(SPEC)
