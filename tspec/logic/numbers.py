"""Numbers in z3: comparisons exactly; sums and products of unknowns as uninterpreted functions.

Their axioms state only facts that rounding cannot change: with one constant operand, a larger
factor or summand gives no smaller result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import z3

from tspec.logic.sorts import Sorts, known_number
from tspec.logic.tensor_facts import Bounds
from tspec.resolve.program import rules


class Numbers:
    """Comparison and arithmetic in one context."""

    def __init__(self, sorts: Sorts, exact: bool = False) -> None:
        self.sorts = sorts
        self.exact = exact
        """Sums and products of floats as IEEE computes them, rounded to the nearest even."""
        self.left_open = False
        """True if some sum or product of floats is encoded as an unknown function."""
        self._products: list[tuple[float, Any, Any]] = []
        """(constant factor, the other factor, the product), in floats."""
        self._sums: list[tuple[float, Any, Any]] = []
        self._nan: list[z3.BoolRef] = []
        self._floats: list[tuple[Any, Any]] = []
        """(an int, the float that it rounds to)"""

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
        found = self._function("float of int", (value,), self.sorts.float)
        if not any(value.eq(known) for known, _ in self._floats):
            self._nan.append(z3.Not(z3.fpIsNaN(found, self.sorts.context)))
            for known, as_float in self._floats:
                self._nan.append(z3.Implies(known <= value, self._at_most(as_float, found)))
                self._nan.append(z3.Implies(value <= known, self._at_most(found, as_float)))
            self._floats.append((value, found))
        return found

    def _at_most(self, small: Any, large: Any) -> z3.BoolRef:
        found: z3.BoolRef = z3.fpLEQ(small, large, self.sorts.context)
        return found

    def in_order(self, small: Any, large: Any) -> z3.BoolRef:
        """`small <= large`, or one is NaN."""
        if small.sort() == self.sorts.int:
            return _in_ints("<=", small, large)
        nan = [z3.fpIsNaN(each, self.sorts.context) for each in (small, large)]
        return z3.Or(*nan, self._at_most(small, large))

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
                return self._int_with_float(op, int_side, _float(constant))
        a, b = self.to_float(expr.left, left), self.to_float(expr.right, right)
        compared: z3.BoolRef = _IN_FLOATS[expr.op](a, b, self.sorts.context)
        return compared

    def _int_with_float(self, op: str, value: Any, constant: float) -> z3.BoolRef:
        """An int against a float constant, both as float64: rounding keeps the order of ints."""
        context = self.sorts.context
        if math.isnan(constant):
            return z3.BoolVal(False, context)
        at_least = _first_int(lambda number: _float(number) >= constant)
        above = _first_int(lambda number: _float(number) > constant)
        everything, nothing = z3.BoolVal(True, context), z3.BoolVal(False, context)

        def reaches(bound: int | None) -> z3.BoolRef:
            return (
                nothing if bound is None else everything if bound == -_ENDLESS else value >= bound
            )

        found = {
            "<": z3.Not(reaches(at_least)),
            "<=": z3.Not(reaches(above)),
            ">": reaches(above),
            ">=": reaches(at_least),
            "==": z3.And(reaches(at_least), z3.Not(reaches(above))),
        }
        return found[op]

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
        if self.exact:
            return _IEEE[expr.op](z3.RNE(self.sorts.context), a, b, self.sorts.context)
        if expr.op in "+*" and (constants[0] is None, str(a)) > (constants[1] is None, str(b)):
            a, b, constants = b, a, (constants[1], constants[0])
        self.left_open = True
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

    def finite(self, value: Any) -> z3.BoolRef:
        """Neither NaN nor infinite."""
        context = self.sorts.context
        if value.sort() == self.sorts.int:
            return z3.BoolVal(True, context)
        return z3.Not(z3.Or(z3.fpIsNaN(value, context), z3.fpIsInf(value, context)))

    def lemmas(self) -> list[z3.BoolRef]:
        """Lemmas on unknown results: NaN stays NaN, and rounding is monotonic, so an order of
        constants implies an order of results.
        """
        found = list(self._nan)
        zero = self.sorts.number(0.0)
        for (_, x, small), (_, y, large) in _ordered_pairs(_with_plain(self._sums, (0.0, None))):
            if x.eq(y):
                found.append(
                    z3.Implies(
                        z3.Not(z3.fpIsNaN(x, self.sorts.context)), self._at_most(small, large)
                    )
                )
        plain = ((0.0, zero), (1.0, None))
        for (_, x, small), (_, y, large) in _ordered_pairs(_with_plain(self._products, *plain)):
            if x.eq(y):
                found.append(z3.Implies(self._at_most(zero, x), self._at_most(small, large)))
                found.append(z3.Implies(self._at_most(x, zero), self._at_most(large, small)))
        return found

    def range_of(self, bounds: Bounds | None, known: z3.BoolRef, value: Any) -> list[z3.BoolRef]:
        """Constrain an unknown to the `bounds` of its read."""
        if bounds is None:
            return []
        if value.sort() == self.sorts.int:
            return [z3.Implies(known, value >= 0)]
        if value.sort() != self.sorts.float:
            return []
        at_least = self._at_most(self.sorts.number(0.0), value)
        if bounds == "fraction":
            in_range = z3.And(at_least, self._at_most(value, self.sorts.number(1.0)))
        else:
            in_range = z3.Or(z3.fpIsNaN(value, self.sorts.context), at_least)
        return [z3.Implies(known, in_range)]


def _with_plain(
    terms: list[tuple[float, Any, Any]], *plain: tuple[float, Any]
) -> list[tuple[float, Any, Any]]:
    """The terms, and for each unknown its results with constants that leave it unchanged, or turn
    it to a constant.

    `plain`: constants with their result; None is the unknown itself.
    """
    found = list(terms)
    unknowns = {str(term[1]): term[1] for term in terms}.values()
    for x in unknowns:
        for constant, result in plain:
            found.append((constant, x, x if result is None else result))
    return found


def _ordered_pairs(terms: list[tuple[float, Any, Any]]) -> list[Any]:
    """Pairs of terms, the smaller constant first."""
    return list(combinations(sorted(terms, key=lambda term: term[0]), 2))


def _float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


_ENDLESS = 2**1025


def _first_int(reached: Callable[[int], bool]) -> int | None:
    """The smallest int that reaches a bound, which larger ones do too; -2**1025 if all do."""
    low, high = -_ENDLESS, _ENDLESS
    if not reached(high):
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle + 1, high)
    return low


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
_IEEE = {"+": z3.fpAdd, "-": z3.fpSub, "*": z3.fpMul, "/": z3.fpDiv}
