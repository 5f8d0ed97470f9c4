"""TS0409: computed floats compared by `==` or `!=`."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.builtin.features import FEATURES
from tspec.builtin.folds import FOLDS
from tspec.builtin.functions import FUNCTIONS
from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation, about
from tspec.lint.rule import LintRule
from tspec.resolve.program import rules, types
from tspec.resolve.program.rules import Compare, Expr
from tspec.resolve.program.types import plain


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for rule in checked.rules:
        for part in checked.written(rule):
            if isinstance(part, Compare) and part.op in ("==", "!=") and _is_rounded(part):
                message = f"`{rule.source.slice(part.span)}` compares rounded numbers bit by bit"
                hint = "say how far apart they may be: `abs(a - b) <= 1e-6 * abs(b)`"
                yield about(rule, message, part.span, hint)


def _is_rounded(part: Compare) -> bool:
    sides = (part.left, part.right)
    if any(_is_exact(side) for side in sides) or _is_earlier(*sides) or _is_earlier(*sides[::-1]):
        return False
    return any(_is_computed(side) for side in sides) or any(_is_fraction(side) for side in sides)


def _is_earlier(one: Expr, other: Expr) -> bool:
    """A value and the same one at an earlier moment: equal means that nothing moved."""
    return isinstance(one, rules.Old | rules.Previous | rules.First) and one.value == other


def _is_exact(expr: Expr) -> bool:
    """Zero, which a computation hits exactly where nothing is there, and infinity."""
    return isinstance(expr, rules.Constant) and (
        isinstance(expr.value, str | bool) or expr.value == 0 or expr.value in (1.0, float("inf"))
    )


def _is_fraction(expr: Expr) -> bool:
    """A constant that no binary number is equal to, such as 0.1."""
    return (
        isinstance(expr, rules.Constant)
        and isinstance(expr.value, float)
        and (expr.value * 1024) % 1 != 0
    )


def _is_computed(expr: Expr) -> bool:
    if plain(expr.type) != types.FLOAT:
        return False
    match expr:
        case rules.Old(value=value) | rules.Previous(value=value) | rules.First(value=value):
            return _is_computed(value)
        case rules.Feature(name=name):
            return FEATURES[name].rounded
        case rules.Fold(name=name):
            return FOLDS[name].rounded
        case rules.Function(name=name):
            return FUNCTIONS[name].rounded
    return isinstance(expr, rules.Arithmetic)


RULE = LintRule("TS0409", "float-equality", check)
