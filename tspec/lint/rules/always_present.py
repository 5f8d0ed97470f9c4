"""TS0413: a guard of a value that is never absent."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import CheckedProgram
from tspec.lint.conditions import left_out
from tspec.lint.finding import LintViolation, SuggestedFix, about
from tspec.lint.rule import LintRule
from tspec.resolve.program import rules
from tspec.resolve.program.rules import Expr, Present, Rule
from tspec.resolve.program.types import ListOf, Optional
from tspec.resolve.program.walk import walk
from tspec.source import Span


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for rule in checked.rules:
        for part in checked.written(rule):
            if not isinstance(part, Present) or _may_be_absent(part.value):
                continue
            if _written_as_changed(rule, part.span):
                continue
            inner = rule.source.slice(part.value.span)
            message = f"`{inner}` is never absent, so that `present` says nothing"
            edits = left_out(rule, part.span)
            fix = SuggestedFix("leave it out", edits) if edits else None
            yield about(rule, message, part.span, "leave it out", fix)


def _may_be_absent(value: Expr) -> bool:
    """Something in it is optional, or looks back to where there may have been nothing."""
    looks = (rules.Previous, rules.First, rules.LastCall, rules.Index)
    for part in walk(value):
        if not isinstance(part, Expr):
            continue
        if isinstance(part.type, Optional | ListOf) or isinstance(part, looks):
            return True
        if isinstance(part, rules.Variable):
            continue
    return False


def _written_as_changed(rule: Rule, span: Span) -> bool:
    """`changed(x)` and names of lets stand for expressions that are not written there."""
    return not rule.source.slice(span).startswith("present")


RULE = LintRule("TS0413", "always-present", check)
