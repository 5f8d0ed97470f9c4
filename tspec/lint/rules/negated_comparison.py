"""TS0412: `not` before what has a form without it."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import Checked
from tspec.lint.conditions import bare, written
from tspec.lint.finding import Edit, Fix, Found, about
from tspec.lint.rule import LintRule
from tspec.source import Source
from tspec.syntax import nodes

# Of NaN `not a < b` is true and `a >= b` is not: only these mean the same.
_OPPOSITE = {"==": "!=", "!=": "==", "in": "not in", "not in": "in", "is": "is not", "is not": "is"}


def check(checked: Checked) -> Iterator[Found]:
    for rule in checked.rules:
        for node in written(rule):
            if not isinstance(node, nodes.Not):
                continue
            text = _without_not(node.value, rule.source)
            shown = rule.source.slice(node.span)
            if text is None or "//" in shown:
                continue
            message = f"`{shown}` is `{text}`"
            fix = Fix(f"write `{text}`", (Edit(bare(rule.source, node.span), f"({text})"),))
            yield about(rule, message, node.span, f"write `{text}`", fix)


def _without_not(value: nodes.Expr, source: Source) -> str | None:
    """What stands for the negation of a value, without `not` before it."""
    match value:
        case nodes.Not(value=inner):
            return source.slice(bare(source, inner.span))
        case nodes.Comparison(operands=(left, right), operators=(operator,)):
            if operator not in _OPPOSITE:
                return None
            opposite = _OPPOSITE[operator]
            return f"{_side(left, source)} {opposite} {_side(right, source)}"
    return None


def _side(side: nodes.Expr, source: Source) -> str:
    return source.slice(bare(source, side.span))


RULE = LintRule("TS0412", "negated-comparison", check)
