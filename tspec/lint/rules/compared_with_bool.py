"""TS0411: a condition compared with `true` or `false`."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import CheckedProgram
from tspec.lint.conditions import bare, is_written
from tspec.lint.finding import Edit, LintViolation, SuggestedFix, about
from tspec.lint.rule import LintRule
from tspec.resolve.program import types
from tspec.resolve.program.rules import (
    And,
    Compare,
    Constant,
    Expr,
    Implies,
    Member,
    Or,
    SameObject,
)
from tspec.source import Source


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for rule in checked.rules:
        for part in checked.expressions(rule):
            if not isinstance(part, Compare) or not is_written(part) or not _is_of_bools(part):
                continue
            truth = part.right.value if isinstance(part.right, Constant) else None
            if rule.source.slice(part.right.span) not in ("true", "false"):
                continue
            text = _text(part.left, rule.source, truth is not (part.op == "=="))
            shown = rule.source.slice(part.span)
            message = f"`{shown}` is `{text}`"
            fix = None
            if "//" not in shown:
                fix = SuggestedFix(
                    f"write `{text}`", (Edit(bare(rule.source, part.span), f"({text})"),)
                )
            yield about(rule, message, part.span, f"write `{text}`", fix)


def _is_of_bools(found: Compare) -> bool:
    """True if both sides are known to be bools.

    The type of an attribute is known only in the recording; an optional may be absent.
    """
    return found.op in ("==", "!=") and found.left.type == types.BOOL


def _text(left: Expr, source: Source, negated: bool) -> str:
    shown = source.slice(left.span)
    if not negated:
        return shown
    simple = not isinstance(left, And | Or | Implies | Compare | Member | SameObject)
    return f"not {shown}" if simple else f"not ({shown})"


RULE = LintRule("TS0411", "compared-with-bool", check)
