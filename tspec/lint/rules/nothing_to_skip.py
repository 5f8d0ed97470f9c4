"""TS0440: `skip` where there is no update: in evaluation, or at a call that comes after it."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.builtin.actions import ACTIONS
from tspec.builtin.events import roles_of
from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation, about
from tspec.lint.rule import LintRule
from tspec.lint.steps import read
from tspec.resolve.program import types
from tspec.resolve.program.rules import And, Compare, Constant, Rule


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for rule in checked.rules:
        written = zip(rule.spans.actions, rule.spans.responses, strict=True)
        skips = [
            span
            for action, span in written
            if ACTIONS[rule.source.slice(action)].needs == "the update"
        ]
        why = _why_not(rule, checked) if skips else None
        if why is not None:
            message = f"{why}, so that there is nothing to skip"
            yield about(rule, message, skips[0], "write `warn`, `stop` or `raise`")


def _why_not(rule: Rule, checked: CheckedProgram) -> str | None:
    """Why no update can be skipped when the rule is decided, or None."""
    events = rule.window.event.events if rule.window.event else ()
    late = [event for event in events if roles_of(event).follows_update]
    if late:
        return f"`{late[0]}` comes after the update of its step"
    phase = read(rule, "phase")
    if phase is None or rule.when is None or checked.proofs.notes(rule, "never due"):
        return None
    value = Constant(phase.type, phase.span, "eval")
    trains = Compare(types.BOOL, phase.span, "!=", phase, value)
    if checked.proofs.never(rule, And(types.BOOL, rule.when.span, (rule.when, trains))):
        return "in evaluation no update is made"
    return None


RULE = LintRule("TS0440", "nothing-to-skip", check)
