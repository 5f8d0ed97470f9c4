"""The types and constants of the language in z3."""

from __future__ import annotations

import math

import z3

from tspec.builtin.functions import ULPS
from tspec.resolve.program import rules, types
from tspec.resolve.program.types import CallOf, Entity, Enum, Type, plain

_TEXTS = (types.STRING, types.DTYPE, types.DEVICE, types.CLASS)


EXACT = 2**53
"""Up to here every int is a float64."""


class Sorts:
    """The sorts of one context.

    Ints are z3's integers, floats IEEE float64, strings z3's strings; subjects and calls are only
    known by identity; lists, sets, maps, tensors and scalars are not looked into.
    """

    def __init__(self, context: z3.Context) -> None:
        self.context = context
        self.bool = z3.BoolSort(context)
        self.int = z3.IntSort(context)
        self.float = z3.FPSort(11, 53, context)
        self.text = z3.StringSort(context)
        self.thing = z3.DeclareSort("Thing", context)
        self.opaque = z3.DeclareSort("Opaque", context)

    def of(self, kind: Type) -> z3.SortRef:
        """The sort of a type's values."""
        kind = plain(kind)
        if kind == types.BOOL:
            return self.bool
        if kind == types.INT:
            return self.int
        if kind == types.FLOAT:
            return self.float
        if kind in _TEXTS or isinstance(kind, Enum):
            return self.text
        if isinstance(kind, Entity | CallOf):
            return self.thing
        return self.opaque

    def number(self, value: float) -> z3.FPRef:
        """A float64 constant, exactly."""
        if math.isnan(value):
            return z3.fpNaN(self.float)
        if math.isinf(value):
            return z3.fpInfinity(self.float, value < 0)
        if value == 0.0:
            return z3.fpZero(self.float, math.copysign(1.0, value) < 0)
        return z3.FPVal(value, None, self.float, self.context)

    def constant(self, expr: rules.Constant) -> z3.ExprRef:
        """A constant of the language."""
        sort = self.of(expr.type)
        if sort == self.bool:
            return z3.BoolVal(bool(expr.value), self.context)
        if sort == self.int and isinstance(expr.value, int):
            return z3.IntVal(expr.value, self.context)
        if sort == self.float and isinstance(expr.value, int | float):
            return self.number(float(expr.value))
        if sort == self.text:
            return z3.StringVal(str(expr.value), self.context)
        return z3.Const(f"constant {expr.value!r}", sort)


def known_number(expr: rules.Expr) -> int | float | None:
    """The value of an expression of numbers alone, such as `2 * ulp(float32)`; None for others."""
    match expr:
        case rules.Constant(value=value) if not isinstance(value, bool | str):
            return value
        case rules.Negate(value=value):
            inner = known_number(value)
            return None if inner is None else -inner
        case rules.Function(name="ulp", arguments=(rules.Constant(value=dtype),)):
            return ULPS.get(str(dtype))
        case rules.Arithmetic(op=op, left=left, right=right):
            return _reckoned(op, known_number(left), known_number(right))
    return None


def _reckoned(op: str, left: int | float | None, right: int | float | None) -> int | float | None:
    if left is None or right is None or (op == "/" and right == 0):
        return None
    try:
        if op == "/":
            return float(left) / float(right)
        if isinstance(left, float) or isinstance(right, float):
            left, right = float(left), float(right)
    except OverflowError:
        return None
    if op == "+":
        return left + right
    return left - right if op == "-" else left * right
