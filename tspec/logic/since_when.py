"""The first step at which a look-back can be known: no window lies before the first step.


Only for windows that are steps; other windows may come several times in one.
"""

from __future__ import annotations

from tspec.builtin.folds import DECIDED_EARLY
from tspec.resolve.program import rules
from tspec.resolve.program.rules import Expr, Window
from tspec.resolve.program.walk import children

NEEDS_ALL = (
    rules.Arithmetic, rules.Compare, rules.Negate, rules.Feature, rules.Field, rules.Old,
)  # fmt: skip
"""Missing where something that they read is."""


def known_from(expr: Expr, window: Window) -> int | None:
    """The first step in which an expression can be known; None if there is no bound."""
    if window.kind != "each" or window.span != "step":
        return None
    stride = window.every.count if window.every is not None else 1
    found = _from(expr, stride)
    return found if found > stride else None


def _from(expr: Expr, stride: int) -> int:
    match expr:
        case rules.Previous(value=value):
            return stride + _from(value, stride)
        case rules.Fold(name=name, value=value, scope="time", over=over) if over is not None:
            if over.unit != "step" or name in DECIDED_EARLY:
                return stride
            return max(over.count - stride, 0) + _from(value, stride)
        case _ if isinstance(expr, NEEDS_ALL):
            below = [_from(e, stride) for e in children(expr) if isinstance(e, rules.Expr)]
            return max([stride, *below])
    return stride
