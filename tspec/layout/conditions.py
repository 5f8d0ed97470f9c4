"""Conditions over settings that are known: the `when` of a place reads sizes of axes and flags."""

from __future__ import annotations

from collections.abc import Mapping
from operator import add, eq, ge, gt, le, lt, mul, ne, sub

from tspec.resolve.program import rules
from tspec.resolve.program.rules import Expr

Value = bool | int | float | str

_COMPARE = {"==": eq, "!=": ne, "<": lt, "<=": le, ">": gt, ">=": ge}
_RECKON = {"+": add, "-": sub, "*": mul}


def is_true(condition: Expr | None, known: Mapping[str, Value]) -> bool:
    """True if a condition holds. An unknown setting is false, like a flag that is off."""
    return condition is None or bool(_value(condition, known))


def _value(expr: Expr, known: Mapping[str, Value]) -> Value:
    match expr:
        case rules.Constant(value=value):
            return value
        case rules.Ambient(name=name):
            return known.get(name, False)
        case rules.Compare(op=op, left=left, right=right):
            return bool(_COMPARE[op](_value(left, known), _value(right, known)))
        case rules.Member(item=item, collection=rules.ListDisplay(items=items)):
            return _value(item, known) in [_value(each, known) for each in items]
        case rules.Not(value=inner):
            return not _value(inner, known)
        case rules.And(items=items):
            return all(_value(each, known) for each in items)
        case rules.Or(items=items):
            return any(_value(each, known) for each in items)
        case rules.Implies(left=left, right=right):
            return not _value(left, known) or bool(_value(right, known))
        case rules.Negate(value=inner):
            return -_number(inner, known)
        case rules.Arithmetic(op="/", left=left, right=right):
            divisor = _number(right, known)
            return _number(left, known) / divisor if divisor else float("nan")
        case rules.Arithmetic(op=op, left=left, right=right):
            return float(_RECKON[op](_number(left, known), _number(right, known)))
    raise TypeError(type(expr).__name__)


def _number(expr: Expr, known: Mapping[str, Value]) -> float:
    return float(_value(expr, known))
