"""A disagreement is found, and told on the smallest trace on which it stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.check.agreement import disagreement
from tests.check.jobs import Shape, job
from tests.check.strategies import loaded, spec
from tspec.check.interpret import interpret
from tspec.check.verdicts import Verdicts
from tspec.resolve.program.rules import Rule
from tspec.trace.model import Trace

RULES = loaded(spec(["  before update\n  expect update.lr >= 0", "  each step\n  expect step > 0"]))
TRACE = job(Shape(seed=1, steps=4))


def hasty(rules: Sequence[Rule], trace: Trace) -> Verdicts:
    """An executor that calls a negative rate fine."""
    found = interpret(rules, trace)
    fine = [
        replace(each, verdict="holds", location=None) if each.verdict == "violated" else each
        for each in found.decided
    ]
    return replace(found, decided=tuple(fine))


def forgetful(rules: Sequence[Rule], trace: Trace) -> Verdicts:
    """An executor that leaves out the last instance."""
    found = interpret(rules, trace)
    return replace(found, decided=found.decided[:-1])


def test_what_agrees_is_not_reported() -> None:
    assert disagreement(RULES, TRACE, interpret) == ""


def test_another_verdict_is_reported_on_a_small_trace() -> None:
    found = disagreement(RULES, TRACE, hasty)
    assert "before update" in found and "other ('holds', '', 1, ''," in found
    assert found.count(": begin ") == 1 and ": parameter" not in found


def test_a_missing_instance_is_reported() -> None:
    assert "other has none" in disagreement(RULES, TRACE, forgetful)


def elsewhere(rules: Sequence[Rule], trace: Trace) -> Verdicts:
    """An executor that points at no line."""
    found = interpret(rules, trace)
    return replace(found, decided=tuple(replace(each, location=None) for each in found.decided))


def test_another_line_is_reported() -> None:
    assert "'violated', '', 1, 'train.py:" in disagreement(RULES, TRACE, elsewhere)
