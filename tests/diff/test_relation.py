"""Which way single changes go, with a situation that shows it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.check.building import HEAD
from tspec.diff import RuleRelation, relate
from tspec.logic.violations import RulePair
from tspec.resolve import load_text
from tspec.resolve.program.rules import Program

STEP = "each step "
OF_P = "for p in parameters each step "


def program(body: str) -> Program:
    """The program of one rule."""
    loaded = load_text(f"{HEAD}invariant a {{ {body} }}")
    assert loaded.program is not None, [d.message for d in loaded.diagnostics]
    return loaded.program


def related(old: str, new: str) -> RuleRelation:
    """The relation of two bodies."""
    before, after = program(old), program(new)
    return relate(before.rules[0], after.rules[0], after.vocabulary)


EQUIVALENT = [
    (STEP + "expect loss < 5", STEP + "expect 5 > loss"),
    (STEP + "expect not (loss > 1 and epoch > 1)", STEP + "expect not loss > 1 or not epoch > 1"),
    (STEP + "when loss > 1 and epoch > 1 expect step > 2", STEP + "when epoch > 1 and loss > 1 expect step > 2"),
    (STEP + "when phase == train expect loss < 5", STEP + "when not phase == eval expect loss < 5"),
    (STEP + "when phase != eval expect loss < 5", STEP + "when phase == train expect loss < 5"),
    (STEP + "expect step > 2.5", STEP + "expect step >= 3"),
    (STEP + "expect step > 2", STEP + "expect step >= 3"),
    (STEP + "expect loss < 10", STEP + "expect loss < 10.0"),
    (STEP + "expect epoch == 9007199254740993", STEP + "expect epoch == 9007199254740993 and epoch > 5"),
    (STEP + "when loss > 5 expect epoch > 0", STEP + "expect loss > 5 implies epoch > 0"),
    (STEP + "when step >= 1 expect loss > 0", STEP + "expect loss > 0"),
    (STEP + "expect loss * 2 > 4", STEP + "expect loss > 2"),
    (STEP + "expect loss == loss", STEP + "expect not (loss != loss)"),
    (STEP + "expect finite(loss) and loss < 5", STEP + "expect loss < 5 and finite(loss)"),
    (OF_P + 'expect p.name in ["a", "b"]', OF_P + 'expect p.name == "b" or p.name == "a"'),
    (OF_P + 'expect p.name == "a"', OF_P + 'expect p.name in ["a"]'),
    (OF_P + "when p.requires_grad expect p.lr > 0", "for p in parameters(requires_grad: true) each step expect p.lr > 0"),
    (OF_P + "expect p.lr > 0", "for q in parameters each step expect q.lr > 0"),
    (OF_P + "expect norm(p.data) >= 0 and p.lr > 1", OF_P + "expect not norm(p.data) < 0 and p.lr > 1 and (norm(p.data) >= 0)"),
    (STEP + "every 10 steps expect loss < 5", STEP + "when divisible(step, by: 10) expect loss < 5"),
    (STEP + "when step > 5 and step < 3 expect loss < 5", STEP + "when step < 0 expect loss < 1"),
    (STEP + "when step > 10 expect loss <= max(previous(loss), over: 20 steps)",
     STEP + "when step > 20 expect loss <= max(previous(loss), over: 20 steps)"),
]  # fmt: skip

TIGHTENED = [
    (STEP + "expect loss < 10", STEP + "expect loss < 5"),
    (STEP + "when loss > 10 expect epoch > 0", STEP + "when loss > 5 expect epoch > 0"),
    (STEP + "when loss > 1 and epoch > 1 expect step > 2", STEP + "when loss > 1 expect step > 2"),
    (STEP + "when loss > 10 and epoch > 2 expect epoch < 5", STEP + "when loss > 10 expect epoch < 3"),
    (STEP + "expect abs(loss - 0.1) <= 0.01", STEP + "expect loss == 0.1"),
    (STEP + "expect not loss >= 5", STEP + "expect loss < 5"),
    (STEP + "expect loss < 0.1 + 0.2", STEP + "expect loss < 0.3"),
    (STEP + "expect loss < 3 or epoch > 2", STEP + "expect loss < 3"),
    (STEP + "expect loss < 3", STEP + "expect loss < 3 and finite(loss)"),
    (STEP + "every 10 steps expect loss < 5", STEP + "every 5 steps expect loss < 5"),
    (STEP + "every 6 steps expect loss < 5", STEP + "every 3 steps expect loss < 5"),
    (STEP + "once expect loss < 5", STEP + "expect loss < 5"),
    (STEP + "every 2 steps expect loss < 5", STEP + "expect loss < 5"),
    (OF_P + 'expect p.name in ["a", "b"]', OF_P + 'expect p.name == "a"'),
    (OF_P + "when present(p.grad) expect p.lr > 0", OF_P + "expect p.lr > 0"),
    ("for p in parameters(requires_grad: true) each step expect p.lr > 0", OF_P + "expect p.lr > 0"),
    ("for p in parameters(requires_grad: true, name: \"a\") each step expect p.lr > 0",
     "for p in parameters(requires_grad: true) each step expect p.lr > 0"),
    (STEP + "expect contains optimizer.step", STEP + "expect contains optimizer.step(lr: 0.5)"),
    (STEP + "expect all(loss < 1, over: 3 steps)", STEP + "expect all(loss < 1, over: 5 steps)"),
    (STEP + "expect loss <= 3 * max(previous(loss), over: 5 steps)",
     STEP + "expect loss <= 3 * max(previous(loss), over: 5 steps) and loss < 100"),
    ("for p in parameters across dp each step expect same(p.data)",
     "for p in parameters across dp each step expect same(p.data) and p.lr > 0"),
    ("for p in parameters during optimizer.step expect norm(change(p.data)) < 5",
     "for p in parameters during optimizer.step expect norm(change(p.data)) < 3"),
]  # fmt: skip

INCOMPARABLE = [
    (STEP + "every 4 steps expect loss < 5", STEP + "every 6 steps expect loss < 5"),
    (STEP + "when loss > 10 expect epoch > 1", STEP + "when loss > 5 expect epoch > 0"),
    (STEP + "expect loss < 5", STEP + "expect loss > 5"),
    (STEP + "expect loss < 5", STEP + "expect epoch < 5"),
    (STEP + "every 2 steps expect loss < 5", STEP + "once expect loss < 5"),
    (STEP + "expect loss < 2 * previous(loss)", STEP + "expect loss < 3 * previous(loss)"),
    ("before optimizer.step expect loss < 5", "after optimizer.step expect loss < 5"),
    ("each step expect loss < 5", "each epoch expect loss < 5"),
    ("for p in parameters across dp each step expect same(p.data)",
     "for p in parameters across tp each step expect same(p.data)"),
    ("for p in parameters across dp each step when p.lr > 1 expect same(p.data)",
     "for p in parameters across dp each step when p.lr > 2 expect same(p.data)"),
    (STEP + "every 10 steps expect loss < 2 * previous(loss)", STEP + "every 5 steps expect loss < 2 * previous(loss)"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new"), EQUIVALENT)
def test_what_says_the_same_is_equivalent(old: str, new: str) -> None:
    assert related(old, new).relation == "equivalent"
    assert related(new, old).relation == "equivalent"


@pytest.mark.parametrize(("old", "new"), TIGHTENED)
def test_what_is_tightened_one_way_is_loosened_the_other(old: str, new: str) -> None:
    found = related(old, new)
    assert found.relation == "tightened", found
    [witness] = found.witnesses
    assert witness.confirmed and witness.new == "violated" != witness.old
    back = related(new, old)
    assert back.relation == "loosened", back
    assert back.witnesses[0].confirmed and back.witnesses[0].old == "violated"


@pytest.mark.parametrize(("old", "new"), INCOMPARABLE)
def test_what_goes_both_ways_is_shown_both_ways(old: str, new: str) -> None:
    for found in (related(old, new), related(new, old)):
        assert found.relation == "incomparable", found
        gained, lost = found.witnesses
        assert gained.confirmed and gained.new == "violated" != gained.old
        assert lost.confirmed and lost.old == "violated" != lost.new


def test_a_witness_names_what_was_read() -> None:
    found = related(
        STEP + "when loss > 10 expect epoch > 0", STEP + "when loss > 5 expect epoch > 0"
    )
    assert found.witnesses[0].line == "step = 1, epoch = 0, loss = 6.0: old idle, new violated"


def test_nan_is_what_tells_not_at_least_from_less() -> None:
    [witness] = related(STEP + "expect not loss >= 5", STEP + "expect loss < 5").witnesses
    assert dict(witness.values)["loss"] == "nan"


def test_what_no_recording_holds_is_taken_as_given() -> None:
    body = "for p in parameters during optimizer.step expect norm(change(p.data)) < {}"
    [witness] = related(body.format(5), body.format(3)).witnesses
    assert witness.given == ("norm(change(p.data))",)


def test_regular_expressions_are_not_looked_into() -> None:
    body = 'for p in parameters each step expect matches(p.name, "{}")'
    assert related(body.format("^a.*b$"), body.format("^a.*b$|^ab$")).relation == "unknown"


def test_a_limit_that_is_too_small_is_unknown_and_not_a_guess() -> None:
    old, new = program(STEP + "expect loss * 2 > 4"), program(STEP + "expect loss > 2")
    pair = RulePair(old.rules[0], new.rules[0], exact=True, limit=10)
    assert pair.only("old").answer == "unknown"


def test_answers_are_the_same_every_time() -> None:
    old = STEP + "when loss > 1 expect loss <= 2 * previous(loss) or epoch > 3"
    new = STEP + "when loss > 2 expect loss <= 3 * previous(loss) and epoch > 2"
    assert len({str(related(old, new)) for _ in range(3)}) == 1


def test_rules_with_other_variables_are_the_same() -> None:
    one = program(OF_P + "expect p.lr > 0").rules[0]
    other = program("for q in parameters each step expect q.lr > 0").rules[0]
    assert RulePair(one, replace(other, name="b")).comparable
