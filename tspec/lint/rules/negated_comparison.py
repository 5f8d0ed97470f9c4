"""TS0412: `not` before an operator that has a negated form."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import CheckedProgram
from tspec.lint.conditions import bare, is_written
from tspec.lint.finding import Edit, LintViolation, SuggestedFix, about
from tspec.lint.rule import LintRule
from tspec.resolve.program.rules import Compare, Expr, Member, Not, SameObject
from tspec.source import Source

# For NaN, `not a < b` is true and `a >= b` is false. Only these two operators are exact opposites.
_OPPOSITE = {"==": "!=", "!=": "=="}


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for rule in checked.rules:
        for negation in checked.expressions(rule):
            if not isinstance(negation, Not) or not is_written(negation):
                continue
            text = _without_not(negation.value, rule.source)
            shown = rule.source.slice(negation.span)
            if text is None or "//" in shown:
                continue
            message = f"`{shown}` is `{text}`"
            fix = SuggestedFix(
                f"write `{text}`", (Edit(bare(rule.source, negation.span), f"({text})"),)
            )
            yield about(rule, message, negation.span, f"write `{text}`", fix)


def _without_not(value: Expr, source: Source) -> str | None:
    """The negation of a value, written without `not`."""
    match value:
        case Not(value=inner) if is_written(value):
            return source.slice(bare(source, inner.span))
        case Compare(op=op, left=left, right=right) if op in _OPPOSITE and is_written(value):
            return _joined(left, _OPPOSITE[op], right, source)
        case Not(value=Member(item=left, collection=right)):
            return _joined(left, "in", right, source)
        case Not(value=SameObject(left=left, right=right)):
            return _joined(left, "is", right, source)
        case Member(item=left, collection=right) if is_written(value):
            return _joined(left, "not in", right, source)
        case SameObject(left=left, right=right) if is_written(value):
            return _joined(left, "is not", right, source)
    return None


def _joined(left: Expr, operator: str, right: Expr, source: Source) -> str:
    first, second = (source.slice(bare(source, side.span)) for side in (left, right))
    return f"{first} {operator} {second}"


RULE = LintRule("TS0412", "negated-comparison", check)
