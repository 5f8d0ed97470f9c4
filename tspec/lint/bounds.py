"""Bounds of values that rules read and that hold in every job: norms are not negative, counts are
whole.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from tspec.builtin.features import FEATURES
from tspec.builtin.folds import FOLDS, BuiltinFold
from tspec.builtin.functions import FUNCTIONS
from tspec.resolve.program import rules, types
from tspec.resolve.program.rules import Compare, Expr
from tspec.resolve.program.types import plain
from tspec.values import STEP_OF_RUN

INFINITY = math.inf
_WHOLE_CONTEXT = frozenset({"step", STEP_OF_RUN, "epoch", "microbatch", "rank"})


@dataclass(frozen=True, slots=True)
class Bounds:
    """The least and the greatest number that a value can be; `nan`: it can be no number too."""

    least: float
    most: float
    nan: bool = False


def bounds(expr: Expr) -> Bounds | None:
    """The bounds of a number that are known before the run, or None."""
    match expr:
        case rules.Constant(value=bool()) | rules.Constant(value=str()):
            return None
        case rules.Constant(value=value):
            assert not isinstance(value, str)
            return Bounds(float(value), float(value))
        case rules.Feature(name=name, per=None, dim=None):
            return _FEATURES.get(FEATURES[name].bounds)
        case rules.Fold(name=name, value=value):
            return _of_fold(FOLDS[name], value)
        case rules.Ambient(name=name) if name in _WHOLE_CONTEXT:
            return Bounds(0, INFINITY)
        case rules.Function(name=name, arguments=(value,)) if FUNCTIONS[name].size:
            return Bounds(0, INFINITY, nan=plain(value.type) != types.INT)
        case rules.Old(value=value) | rules.Previous(value=value) | rules.First(value=value):
            return bounds(value)
        case rules.Negate(value=value):
            found = bounds(value)
            return found and Bounds(-found.most, -found.least, found.nan)
    return None


_FEATURES: dict[str | None, Bounds] = {
    "size": Bounds(0, INFINITY, nan=True),
    "count": Bounds(0, INFINITY),
    "fraction": Bounds(0, 1),
}


def _of_fold(fold: BuiltinFold, value: Expr) -> Bounds | None:
    if fold.bounds == "size":
        return Bounds(0, INFINITY, nan=fold.takes == "numbers")
    return bounds(value) if fold.bounds == "within" else None


Constancy = Literal["always", "never", "but for nan"]


def truth(compare: Compare) -> Constancy | None:
    """The truth of a comparison if it is the same in every situation, or else None.

    `but for nan`: it is true unless an operand is NaN.
    """
    left, right = bounds(compare.left), bounds(compare.right)
    if left is None or right is None:
        return None
    if isinstance(compare.left, rules.Constant) and isinstance(compare.right, rules.Constant):
        return None  # The condition reads nothing: it switches a part on or off.
    nan = left.nan or right.nan
    if _surely(compare.op, left, right):
        return "but for nan" if nan and compare.op != "!=" else "always"
    opposite = _OPPOSITE[compare.op]
    if _surely(opposite, left, right) and not (nan and compare.op == "!="):
        return "never"
    return None


_OPPOSITE: dict[str, str] = {
    "<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "==",
}  # fmt: skip


def _surely(op: str, left: Bounds, right: Bounds) -> bool:
    """True if the comparison holds for all numbers within the bounds."""
    match op:
        case "<":
            return left.most < right.least
        case "<=":
            return left.most <= right.least
        case ">":
            return left.least > right.most
        case ">=":
            return left.least >= right.most
        case "!=":
            return left.most < right.least or left.least > right.most
    return left.least == left.most == right.least == right.most
