"""A plugin of pytest: whatever a test asks the interpreter, the columnar checker has to answer alike."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.check import building
from tspec.check.columnar import check
from tspec.check.interpret import interpret
from tspec.check.verdicts import Verdicts
from tspec.resolve.program.rules import Rule
from tspec.trace.model import Trace


def both(rules: Sequence[Rule], trace: Trace) -> Verdicts:
    """The interpreter's verdicts, after all that can be compared was compared."""
    ours, theirs = interpret(rules, trace), check(rules, trace)
    assert _by_instance(theirs) == _by_instance(ours)
    assert sorted(theirs.notes) == sorted(ours.notes)
    assert theirs.ends_early == ours.ends_early
    return ours


def _by_instance(found: Verdicts) -> dict[object, object]:
    return {
        each.instance: (each.verdict, each.reason, each.values, each.step, each.location)
        for each in found.decided
    }


@pytest.fixture(autouse=True)
def _queries_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "interpret", both)
