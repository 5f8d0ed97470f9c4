"""TS0421: a rule that is evaluated once, before its `when` can be true."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation, about
from tspec.lint.rule import LintRule
from tspec.lint.steps import are_true_at, begins_in_the_first_step, of_the_step, read_step
from tspec.resolve.program import types
from tspec.resolve.program.queries import conjuncts
from tspec.resolve.program.rules import And, Compare, Constant


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for rule in checked.rules:
        step = read_step(rule)
        if not rule.window.once or rule.when is None or step is None:
            continue
        if not begins_in_the_first_step(rule) or checked.proofs.notes(rule, "never due"):
            continue
        if are_true_at(of_the_step(rule), 1) and of_the_step(rule) == list(conjuncts(rule.when)):
            continue
        one = Constant(types.INT, step.span, 1)
        first = Compare(types.BOOL, step.span, "<=", step, one)
        if checked.proofs.never(rule, And(types.BOOL, rule.when.span, (rule.when, first))):
            message = "`once` is the first time, in step 1, and there `when` is false"
            hint = "write `when step == N` without `once`, for the step that is meant"
            yield about(rule, message, rule.spans.thinning, hint)


RULE = LintRule("TS0421", "once-too-late", check)
