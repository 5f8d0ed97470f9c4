"""TS0411: a condition compared with `true` or `false`."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import Checked
from tspec.lint.conditions import bare, expressions, written
from tspec.lint.finding import Edit, Fix, Found, about
from tspec.lint.rule import LintRule
from tspec.resolve.program import types
from tspec.resolve.program.rules import Compare, Rule
from tspec.source import Source
from tspec.syntax import nodes


def check(checked: Checked) -> Iterator[Found]:
    for rule in checked.rules:
        for node in written(rule):
            if not isinstance(node, nodes.Comparison) or node.operators not in (("==",), ("!=",)):
                continue
            left, right = node.operands
            if not isinstance(right, nodes.Boolean) or not _is_of_bools(rule, node):
                continue
            negated = right.value != (node.operators == ("==",))
            text = _text(left, rule.source, negated)
            shown = rule.source.slice(node.span)
            message = f"`{shown}` is `{text}`"
            fix = None
            if "//" not in shown:
                fix = Fix(f"write `{text}`", (Edit(bare(rule.source, node.span), f"({text})"),))
            yield about(rule, message, node.span, f"write `{text}`", fix)


def _is_of_bools(rule: Rule, node: nodes.Comparison) -> bool:
    """Of an attribute only the recording knows whether it is a bool; an optional may be absent."""
    return any(
        isinstance(part, Compare) and part.span == node.span and part.left.type == types.BOOL
        for part in expressions(rule)
    )


def _text(left: nodes.Expr, source: Source, negated: bool) -> str:
    shown = source.slice(left.span)
    if not negated:
        return shown
    simple = isinstance(left, nodes.Name | nodes.Attribute | nodes.Call | nodes.Index)
    return f"not {shown}" if simple else f"not ({shown})"


RULE = LintRule("TS0411", "compared-with-bool", check)
