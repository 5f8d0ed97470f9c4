"""TS0407: a comparison that is true, or false, whatever the job does."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.bounds import INFINITY, Constancy, bounds, truth
from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation, about
from tspec.lint.rule import LintRule
from tspec.resolve.program.rules import Compare, Constant, Expr, Rule
from tspec.resolve.program.walk import walk


def compared(condition: Expr) -> Iterator[tuple[Compare, Constancy]]:
    """The comparisons below a condition that come to the same in every situation."""
    for part in walk(condition):
        if isinstance(part, Compare):
            found = truth(part)
            if found is not None:
                yield part, found


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for rule in checked.rules:
        for part in checked.written(rule):
            found = truth(part) if isinstance(part, Compare) else None
            if not isinstance(part, Compare) or found is None or found == "but for nan":
                continue
            word = "true" if found == "always" else "false"
            message = f"`{rule.source.slice(part.span)}` is always {word}"
            yield about(rule, message, part.span, _hint(rule, part))


def _hint(rule: Rule, part: Compare) -> str | None:
    """A hint with the range of the non-constant side."""
    for side in (part.left, part.right):
        found = bounds(side)
        if found is None or isinstance(side, Constant):
            continue
        shown = rule.source.slice(side.span)
        if found.most == INFINITY:
            return f"`{shown}` is never below {found.least:g}"
        if found.least == -INFINITY:
            return f"`{shown}` is never above {found.most:g}"
        return f"`{shown}` is between {found.least:g} and {found.most:g}"
    return None


RULE = LintRule("TS0407", "constant-comparison", check)
