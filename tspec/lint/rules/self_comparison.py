"""TS0410: a value compared with itself."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation, about
from tspec.lint.rule import LintRule
from tspec.resolve.program import types
from tspec.resolve.program.rules import Arithmetic, Compare, Constant, Expr, Member, SameObject
from tspec.resolve.program.types import plain


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for rule in checked.rules:
        for part in checked.written(rule):
            if compares_itself(part):
                message = f"`{rule.source.slice(part.span)}` has the same value on both sides"
                hint = "for what it was before, write `old(...)`, `previous(...)` or `first(...)`"
                if isinstance(part, Compare) and plain(part.left.type) == types.FLOAT:
                    hint += "; for NaN, `finite(...)`"
                yield about(rule, message, part.span, hint)


def compares_itself(part: Expr) -> bool:
    """Two sides that are one expression, and no constant."""
    match part:
        case Compare(left=left, right=right) | SameObject(left=left, right=right):
            return left == right and not isinstance(left, Constant)
        case Member(item=left, collection=right):
            return left == right
        case Arithmetic(op="-" | "/", left=left, right=right):
            return left == right and not isinstance(left, Constant)
    return False


RULE = LintRule("TS0410", "self-comparison", check)
