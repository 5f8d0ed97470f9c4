"""What z3 is told of folds over time, of look-backs, of ints as floats, of texts and enumerations."""

from __future__ import annotations

import math

import pytest
import z3

from tests.check.building import rules
from tspec.logic.encode import Encoder
from tspec.logic.questions import Questions
from tspec.logic.since_when import known_from
from tspec.logic.violations import RulePair
from tspec.resolve.program.rules import Expr, Holds, Rule

STEP = "each step expect "


def condition(body: str) -> tuple[Rule, Expr]:
    """A rule with the condition that it expects."""
    [rule] = rules(body)
    assert isinstance(rule.expect, Holds)
    return rule, rule.expect.condition


def always(text: str) -> bool:
    """Whether a condition is never known and false."""
    _, expr = condition(STEP + text)
    asked = Questions({})
    return asked.always(z3.Not(asked.encoder.encode(expr).false)).yes


@pytest.mark.parametrize(
    "text",
    [
        "all(loss < 1, over: 5 steps) implies all(loss < 1, over: 3 steps)",
        "any(loss < 1, over: 3 steps) implies any(loss < 1, over: 5 steps)",
        "same(loss, over: 5 steps) implies same(loss, over: 3 steps)",
        "not max(loss, over: 5 steps) < max(loss, over: 3 steps)",
        "not min(loss, over: 5 steps) > min(loss, over: 3 steps)",
        "not spread(loss, over: 5 steps) < spread(loss, over: 3 steps)",
        "phase == train or phase == eval",
        "2 * loss <= 0 or not loss < 0",
        "loss < 0 or not 3 * loss < loss",
    ],
)
def test_what_is_always_so_is_known_to_be(text: str) -> None:
    assert always(text)


@pytest.mark.parametrize(
    "text",
    [
        "all(loss < 1, over: 3 steps) implies all(loss < 1, over: 5 steps)",
        "not mean(loss, over: 5 steps) < mean(loss, over: 3 steps)",
        "finite(loss)",
        "loss <= 2 * loss",
        "round(loss) <= 2 or round(loss) > 2",
        "round(loss) + 1 <= 2 or round(loss) + 1 > 2",
    ],
)
def test_what_may_not_be_so_is_not_said(text: str) -> None:
    assert not always(text)


def rounded(value: int) -> float:
    """An int as float64, as the interpreter compares it."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


@pytest.mark.parametrize(
    "constant", [2.5, -0.5, 0.0, 2.0**53, 2.0**53 + 2, -(2.0**60), 1e308, math.inf]
)
@pytest.mark.parametrize("op", ["<", "<=", ">", ">=", "=="])
def test_ints_are_compared_with_floats_as_they_round(constant: float, op: str) -> None:
    encoder = Encoder()
    value = z3.Int("i", encoder.context)
    found = encoder.numbers._int_with_float(op, value, constant)
    near = int(constant) if math.isfinite(constant) else 2**1024
    for number in (0, near - 2, near - 1, near, near + 1, near + 2, 2**1023, 2**1024, -(2**1030)):
        expected = {
            "<": rounded(number) < constant, "<=": rounded(number) <= constant,
            ">": rounded(number) > constant, ">=": rounded(number) >= constant,
            "==": rounded(number) == constant,
        }[op]  # fmt: skip
        told = z3.simplify(z3.substitute(found, (value, z3.IntVal(number, encoder.context))))
        assert z3.is_true(told) == expected, (number, op, constant)


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("each step expect previous(loss) > 0", 2),
        ("each step every 5 steps expect previous(loss) > 0", 10),
        ("each step expect max(loss, over: 20 steps) > 0", 20),
        ("each step expect max(previous(loss), over: 20 steps) > 0", 21),
        ("each step expect any(loss > 0, over: 20 steps)", None),
        ("before optimizer.step expect previous(loss) > 0", None),
    ],
)
def test_what_looks_back_is_known_from_some_step_on(text: str, first: int | None) -> None:
    rule, expr = condition(text)
    inner = getattr(expr, "left", expr)
    assert known_from(inner, rule.window) == first


def test_the_exact_question_needs_no_lemma() -> None:
    old, new = rules(STEP + "loss + loss > 4", STEP + "2 * loss > 4")
    assert RulePair(old, new).only("old").answer == "yes"  # Sums are left open.
    exact = RulePair(old, new, exact=True)
    assert (exact.only("old").answer, exact.only("new").answer) == ("no", "no")


def test_what_was_learnt_is_not_asked_again() -> None:
    old, new = rules(STEP + "loss + 1 > 4", STEP + "loss > 3")
    pair = RulePair(old, new)
    first = pair.only("new").situation
    assert first is not None and pair.rule_out(first, "new")
    assert pair.only("new").situation != first
