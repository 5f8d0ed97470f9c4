"""What operators do with values: comparison, membership, arithmetic and functions.

Page: "Values". A `Datum` is a value of the trace, a `Call`, or a tuple of these.
"""

from __future__ import annotations

import math
import operator
import re
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias, TypeGuard

from tspec.trace.model import Missing, Ref, Tensor

Datum: TypeAlias = object

_FRACTION_BITS = {
    **{"float64": 52, "float32": 23, "float16": 10, "bfloat16": 7},
    **{"float8_e4m3fn": 3, "float8_e4m3fnuz": 3, "float8_e5m2": 2, "float8_e5m2fnuz": 2},
}
"""The bits of the fraction of each floating dtype."""


def is_number(value: Datum) -> TypeGuard[int | float]:
    """An int or float; bools are no numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def to_float(value: int | float) -> float:
    """The float64 of a number; ints out of its range are infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def missing_in(value: Datum) -> Missing | None:
    """Why a value cannot be compared as a whole: the first missing value in it."""
    if isinstance(value, Missing):
        return value
    if isinstance(value, Tensor):
        return Missing.NOT_RECORDED if value.digest is None else None
    if isinstance(value, tuple):
        return first_missing(value)
    if isinstance(value, Mapping):
        return first_missing(value.values())
    return None


def first_missing(values: Iterable[Datum]) -> Missing | None:
    """The reason of the first of several values that is missing, or holds something missing."""
    return next((why for why in map(missing_in, values) if why is not None), None)


# --- equality -----------------------------------------------------------------------------------


def equal(left: Datum, right: Datum) -> bool:
    """`==` of two known values: IEEE on floats, by value else, tensors by digest."""
    if is_number(left) and is_number(right):
        if isinstance(left, int) and isinstance(right, int):
            return left == right
        return to_float(left) == to_float(right)
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        return left.digest == right.digest
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(equal(left[key], right[key]) for key in left)
    return type(left) is type(right) and left == right


def bits(value: Datum) -> Datum:
    """What `same` and `distinct` compare: equal for values of the same bits, and hashable."""
    if isinstance(value, float):
        return ("float", struct.pack("<d", value))
    if isinstance(value, Tensor):
        return ("tensor", value.digest)
    if isinstance(value, tuple):
        return tuple(map(bits, value))
    if isinstance(value, frozenset):
        return frozenset(map(bits, value))
    if isinstance(value, Mapping):
        return ("map", frozenset((key, bits(item)) for key, item in value.items()))
    return (type(value).__name__, value)


def all_bits(values: Iterable[Datum]) -> list[Datum]:
    """The bits of several values; where some are floats, ints are compared as floats."""
    known = list(values)
    if any(isinstance(value, float) for value in known):
        known = [to_float(value) if is_number(value) else value for value in known]
    return list(map(bits, known))


# --- operators: missing where an operand is -----------------------------------------------------

_ORDER: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def compare(op: str, left: Datum, right: Datum) -> Datum:
    """`left op right`: a bool or Missing."""
    why = first_missing((left, right))
    if why is not None:
        return why
    if op == "==":
        return equal(left, right)
    if op == "!=":
        return not equal(left, right)
    if is_number(left) and is_number(right):
        if isinstance(left, float) or isinstance(right, float):
            left, right = to_float(left), to_float(right)
        return _ORDER[op](left, right)
    if isinstance(left, str) and isinstance(right, str):
        return _ORDER[op](left, right)
    return Missing.NOT_RECORDED


def same_object(left: Datum, right: Datum) -> Datum:
    """`x is y`."""
    if isinstance(left, Missing):
        return left
    if isinstance(right, Missing):
        return right
    if isinstance(left, Tensor) and isinstance(right, Tensor):
        if left.object is None or right.object is None:
            return Missing.NOT_RECORDED
        return left.object == right.object
    return compare("==", left, right)


def member(item: Datum, collection: Datum) -> Datum:
    """`item in collection`."""
    if isinstance(item, Missing):
        return item
    if isinstance(collection, Missing):
        return collection
    if isinstance(collection, str):
        return item in collection if isinstance(item, str) else Missing.NOT_RECORDED
    if isinstance(collection, Mapping):
        return _in_map(item, collection)
    if not isinstance(collection, tuple | frozenset):
        return Missing.NOT_RECORDED
    if isinstance(item, tuple | frozenset):
        return conjunction(_element(each, collection) for each in item)
    return _element(item, collection)


def _element(item: Datum, collection: Iterable[Datum]) -> Datum:
    """An absent element equals nothing; one that is missing otherwise might be the item."""
    answers = [compare("==", item, each) for each in collection if each is not Missing.ABSENT]
    return disjunction(answers)


def _in_map(item: Datum, collection: Mapping[str, Datum]) -> Datum:
    if isinstance(item, Mapping):
        return conjunction(
            compare("==", value, collection[key]) if key in collection else False
            for key, value in item.items()
        )
    if isinstance(item, tuple | frozenset):
        return conjunction(
            each if isinstance(each, Missing) else each in collection for each in item
        )
    return item in collection


# --- Kleene -------------------------------------------------------------------------------------


def conjunction(items: Iterable[Datum]) -> Datum:
    """Kleene's and: false if one is false, else missing (reason of the first) if one is, else true."""
    known = list(items)
    if any(item is False for item in known):
        return False
    return next((item for item in known if item is not True), True)


def disjunction(items: Iterable[Datum]) -> Datum:
    """Kleene's or."""
    known = list(items)
    if any(item is True for item in known):
        return True
    return next((item for item in known if item is not False), False)


def negation(value: Datum) -> Datum:
    """Kleene's not."""
    return value if isinstance(value, Missing) else not value


def truth(value: Datum) -> Datum:
    """A value where a bool is expected: what is neither bool nor missing does not fit."""
    return value if isinstance(value, bool | Missing) else Missing.NOT_RECORDED


# --- arithmetic and functions -------------------------------------------------------------------


def divide(left: float, right: float) -> float:
    """IEEE division."""
    if right != 0.0:
        return left / right
    if left == 0.0 or math.isnan(left):
        return math.nan
    return math.copysign(math.inf, left) * math.copysign(1.0, right)


def arithmetic(op: str, left: Datum, right: Datum) -> Datum:
    """`left op right`: exact in ints, else in float64."""
    why = first_missing((left, right))
    if why is not None:
        return why
    if not (is_number(left) and is_number(right)):
        return Missing.NOT_RECORDED
    if op == "/":
        return divide(to_float(left), to_float(right))
    if isinstance(left, float) or isinstance(right, float):
        left, right = to_float(left), to_float(right)
    if op == "+":
        return left + right
    return left - right if op == "-" else left * right


def negate(value: Datum) -> Datum:
    """`-value`."""
    if is_number(value):
        return -value
    return value if isinstance(value, Missing) else Missing.NOT_RECORDED


def function(name: str, arguments: tuple[Datum, ...]) -> Datum:
    """A function of known values; missing where an argument is."""
    why = first_missing(arguments)
    if why is not None:
        return why
    return FUNCTIONS[name](*arguments)


def _divisible(value: Datum, by: Datum) -> Datum:
    if isinstance(value, tuple):
        return tuple(_divisible(item, by) for item in value)
    if not (is_number(value) and is_number(by)):
        return Missing.NOT_RECORDED
    if by == 0 or not math.isfinite(value):
        return False
    return value % by == 0


def _of_text(of: Callable[..., Datum]) -> Callable[..., Datum]:
    def found(*texts: Datum) -> Datum:
        return of(*texts) if all(isinstance(text, str) for text in texts) else Missing.NOT_RECORDED

    return found


def _of_number(of: Callable[[float], int | float]) -> Callable[[Datum], Datum]:
    return lambda value: of(value) if is_number(value) else Missing.NOT_RECORDED


def _logarithm(value: int | float) -> float:
    if value == 0:
        return -math.inf
    return math.log(value) if value > 0 else math.nan


def _exponential(value: int | float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def _whole(rounding: Callable[[float], int]) -> Callable[[float], int | float]:
    return lambda value: rounding(value) if math.isfinite(value) else value


def _ulp(dtype: str) -> Datum:
    """The gap between 1 and the next number of a dtype."""
    bits_ = _FRACTION_BITS.get(dtype)
    return Missing.NOT_RECORDED if bits_ is None else 2.0**-bits_


FUNCTIONS: Mapping[str, Callable[..., Datum]] = {
    "abs": _of_number(abs),
    "sqrt": _of_number(lambda value: math.sqrt(value) if not value < 0 else math.nan),
    "log": _of_number(_logarithm),
    "exp": _of_number(_exponential),
    "ceil": _of_number(_whole(math.ceil)),
    "floor": _of_number(_whole(math.floor)),
    "round": _of_number(_whole(round)),
    "ulp": _of_text(_ulp),
    "divisible": _divisible,
    "endswith": _of_text(lambda text, end: text.endswith(end)),
    "startswith": _of_text(lambda text, start: text.startswith(start)),
    "join": _of_text(lambda first, second: "".join((first, second))),
    "matches": _of_text(lambda text, pattern: re.search(pattern, text) is not None),
}
"""All but `isinstance`, which reads classes."""


def is_instance(classes: Datum, wanted: Datum) -> Datum:
    """One of a class's dotted paths (a string joined by blanks) is the wanted one, or one of a list."""
    why = first_missing((classes, wanted))
    if why is not None:
        return why
    if not isinstance(classes, str):
        return Missing.NOT_RECORDED
    paths = classes.split(" ")
    return any(each in paths for each in (wanted if isinstance(wanted, tuple) else (wanted,)))


def set_order(values: Iterable[Datum], order: Callable[[Ref], int]) -> tuple[Datum, ...]:
    """A set as a list: subjects in the order of `order`, other values sorted by value."""

    def key(value: Datum) -> tuple[str, float, str]:
        if isinstance(value, Ref):
            return ("ref", order(value), value.name)
        if is_number(value):
            return ("number", to_float(value), "")
        return (type(value).__name__, 0.0, str(value))

    return tuple(sorted(values, key=key))
