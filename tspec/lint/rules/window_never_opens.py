"""TS0420: a window thinned to steps at which `when` is never true."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation, about
from tspec.lint.rule import LintRule
from tspec.lint.steps import may_be_due, read_step
from tspec.resolve.program import types
from tspec.resolve.program.rules import And, Constant, Function


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for rule in checked.rules:
        every, when = rule.window.every, rule.when
        step = read_step(rule)
        if every is None or every.unit != "step" or when is None or step is None:
            continue
        if may_be_due(rule, every.count) or checked.proofs.notes(rule, "never due"):
            continue
        count = Constant(types.INT, step.span, every.count)
        opens = Function(types.BOOL, step.span, "divisible", (step, count))
        if checked.proofs.never(rule, And(types.BOOL, when.span, (when, opens))):
            message = f"`{rule.name}` is looked at in every {every.count}th step, and due in none"
            hint = f"`when` is false in all steps that {every.count} divides"
            yield about(rule, message, rule.spans.thinning, hint)


RULE = LintRule("TS0420", "window-never-opens", check)
