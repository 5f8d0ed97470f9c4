"""Numbers in z3: comparisons exactly; sums and products of unknowns as functions that are not known.

Of these functions z3 is only told what rounding cannot change: a constant factor or summand that
is larger gives no smaller result.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any

import z3

from tspec.logic.sorts import EXACT, Sorts, known_number
from tspec.resolve import rules


class Numbers:
    """Comparison and arithmetic in one context."""

    def __init__(self, sorts: Sorts) -> None:
        self.sorts = sorts
        self._products: list[tuple[float, Any, Any]] = []
        """(constant factor, the other factor, the product), in floats."""
        self._sums: list[tuple[float, Any, Any]] = []
        self._nan: list[z3.BoolRef] = []

    def constant(self, expr: rules.Expr) -> z3.FPRef | None:
        """The float of an expression of constants."""
        value = known_number(expr)
        return None if value is None else self.sorts.number(float(value))

    def to_float(self, expr: rules.Expr, value: Any) -> Any:
        """A number as float64; of an unknown int it is not known which."""
        constant = known_number(expr)
        if constant is not None:
            return self.sorts.number(_float(constant))
        if value.sort() == self.sorts.float:
            return value
        return self._function("float of int", (value,), self.sorts.float)

    def _at_most(self, small: Any, large: Any) -> z3.BoolRef:
        found: z3.BoolRef = z3.fpLEQ(small, large, self.sorts.context)
        return found

    def _function(self, name: str, arguments: Sequence[Any], result: z3.SortRef) -> Any:
        kinds = [argument.sort() for argument in arguments]
        return z3.Function(name, *kinds, result)(*arguments)

    # --- comparisons ----------------------------------------------------------------------------

    def compare(self, expr: rules.Compare, left: Any, right: Any) -> z3.BoolRef:
        """`==`, `<`, `<=`, `>`, `>=` of two known numbers, as IEEE or exactly in ints."""
        if left.sort() == right.sort() == self.sorts.int:
            return _in_ints(expr.op, left, right)
        for int_side, other, op in (
            (left, expr.right, expr.op),
            (right, expr.left, _TURNED[expr.op]),
        ):
            constant = known_number(other)
            if int_side.sort() == self.sorts.int and constant is not None:
                found = self._int_with_float(op, int_side, float(constant))
                if found is not None:
                    return found
        a, b = self.to_float(expr.left, left), self.to_float(expr.right, right)
        compared: z3.BoolRef = _IN_FLOATS[expr.op](a, b, self.sorts.context)
        return compared

    def _int_with_float(self, op: str, value: Any, constant: float) -> z3.BoolRef | None:
        """An int against a float constant, both as float64; below 2**53 that is exact."""
        if math.isnan(constant):
            return z3.BoolVal(False, self.sorts.context)
        if not abs(constant) < EXACT:
            return None
        below = math.floor(constant)
        if below == constant:
            return _in_ints(op, value, z3.IntVal(below, self.sorts.context))
        if op == "==":
            return z3.BoolVal(False, self.sorts.context)
        return value <= below if op in ("<", "<=") else value > below

    # --- arithmetic -----------------------------------------------------------------------------

    def reckon(self, expr: rules.Arithmetic, left: Any, right: Any) -> Any:
        """`left op right`: linear in ints exactly, all else as an unknown function."""
        if left.sort() == right.sort() == self.sorts.int and expr.op != "/":
            if expr.op == "+":
                return left + right
            if expr.op == "-":
                return left - right
            factors = (known_number(expr.left), known_number(expr.right))
            if factors != (None, None):
                return left * right
            left, right = sorted((left, right), key=str)
            return self._function("product of ints", (left, right), self.sorts.int)
        return self._reckon_floats(expr, left, right)

    def _reckon_floats(self, expr: rules.Arithmetic, left: Any, right: Any) -> Any:
        constants = (known_number(expr.left), known_number(expr.right))
        folded = known_number(expr)
        if folded is not None:
            return self.sorts.number(_float(folded))
        a, b = self.to_float(expr.left, left), self.to_float(expr.right, right)
        if expr.op in "+*" and (constants[0] is None, str(a)) > (constants[1] is None, str(b)):
            a, b, constants = b, a, (constants[1], constants[0])
        result = self._function(f"float {expr.op}", (a, b), self.sorts.float)
        nan = [z3.fpIsNaN(each, self.sorts.context) for each in (a, b, result)]
        self._nan.append(z3.Implies(z3.Or(nan[0], nan[1]), nan[2]))
        constant = None if constants[0] is None else _float(constants[0])
        if constant is not None and math.isfinite(constant) and expr.op in "+*":
            if expr.op == "+":
                self._sums.append((constant, b, result))
            elif constant != 0:
                self._products.append((constant, b, result))
            if expr.op == "+" or constant != 0:
                self._nan.append(nan[1] == nan[2])
        return result

    def negated(self, value: Any) -> Any:
        """`-x` of a known number."""
        is_float = value.sort() == self.sorts.float
        return z3.fpNeg(value, self.sorts.context) if is_float else -value

    def function(self, expr: rules.Function, value: Any) -> Any:
        """`abs(x)`, `divisible(x, by: 8)` of a known number; None where it is not looked into."""
        sort = value.sort()
        if expr.name == "abs" and sort == self.sorts.float:
            return z3.fpAbs(value, self.sorts.context)
        if expr.name == "abs" and sort == self.sorts.int:
            return z3.If(value < 0, -value, value)
        by = known_number(expr.arguments[-1])
        if expr.name == "divisible" and sort == self.sorts.int and isinstance(by, int) and by:
            return value % abs(by) == 0
        return None

    def lemmas(self) -> list[z3.BoolRef]:
        """NaN stays NaN; rounding is monotonic, so what holds between constants does between results."""
        found = list(self._nan)
        zero = self.sorts.number(0.0)
        for (_, x, small), (_, y, large) in _ordered_pairs(self._sums):
            if x.eq(y):
                found.append(
                    z3.Implies(
                        z3.Not(z3.fpIsNaN(x, self.sorts.context)), self._at_most(small, large)
                    )
                )
        for (_, x, small), (_, y, large) in _ordered_pairs(self._products):
            if x.eq(y):
                found.append(z3.Implies(self._at_most(zero, x), self._at_most(small, large)))
                found.append(z3.Implies(self._at_most(x, zero), self._at_most(large, small)))
        return found

    def range_of(self, feature: str, known: z3.BoolRef, value: Any) -> list[z3.BoolRef]:
        """What a feature can be at all: a norm is no negative number, a share of zeros at most 1."""
        if feature == "numel":
            return [z3.Implies(known, value >= 0)]
        if feature not in ("norm", "std", "zeros") or value.sort() != self.sorts.float:
            return []
        zero, one = self.sorts.number(0.0), self.sorts.number(1.0)
        if feature == "zeros":
            return [
                z3.Implies(known, z3.And(self._at_most(zero, value), self._at_most(value, one)))
            ]
        return [
            z3.Implies(
                known, z3.Or(z3.fpIsNaN(value, self.sorts.context), self._at_most(zero, value))
            )
        ]


def _ordered_pairs(terms: list[tuple[float, Any, Any]]) -> list[Any]:
    """Pairs of terms, the smaller constant first."""
    return list(combinations(sorted(terms, key=lambda term: term[0]), 2))


def _float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _in_ints(op: str, left: Any, right: Any) -> z3.BoolRef:
    found: z3.BoolRef = {
        "==": left == right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }[op]
    return found


_TURNED = {"==": "==", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_IN_FLOATS = {"==": z3.fpEQ, "<": z3.fpLT, "<=": z3.fpLEQ, ">": z3.fpGT, ">=": z3.fpGEQ}
