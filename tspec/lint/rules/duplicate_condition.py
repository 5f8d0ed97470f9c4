"""TS0406: an operand of `and` or `or` that stands there already."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tspec.diagnostics import Related
from tspec.lint.checked import CheckedProgram
from tspec.lint.conditions import left_out
from tspec.lint.finding import LintViolation, SuggestedFix, about
from tspec.lint.rule import LintRule
from tspec.resolve.program.rules import And, Expr, Or


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for rule in checked.rules:
        for double, first in duplicates(checked.written(rule)):
            message = f"`{rule.source.slice(double.span)}` stands there twice"
            edits = left_out(rule, double.span)
            fix = SuggestedFix("leave it out", edits) if edits else None
            there = Related(first.span, "the first time")
            yield about(rule, message, double.span, "leave it out", fix, (there,))


def duplicates(parts: Sequence[Expr]) -> Iterator[tuple[Expr, Expr]]:
    """Operands that are there already, each with the first one."""
    for whole in parts:
        if not isinstance(whole, And | Or):
            continue
        seen: dict[Expr, Expr] = {}
        for item in whole.items:
            first = seen.setdefault(item, item)
            if first is not item and first.span != item.span:
                yield item, first


RULE = LintRule("TS0406", "duplicate-condition", check)
