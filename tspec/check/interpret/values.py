"""The operators on values: comparison, membership, arithmetic and functions.


Page: "Values". A `Datum` is a value of the trace, a `Call`, or a tuple of these.
"""

from __future__ import annotations

import math
import operator
import re
import struct
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeAlias, TypeGuard

from tspec.trace.model import Missing, Ref, Tensor

Datum: TypeAlias = object

_FRACTION_BITS = {
    **{"float64": 52, "float32": 23, "float16": 10, "bfloat16": 7},
    **{"float8_e4m3fn": 3, "float8_e4m3fnuz": 3, "float8_e5m2": 2, "float8_e5m2fnuz": 2},
}
"""The bits of the fraction of each floating dtype."""
_OUT_OF_RANGE = 2**1024 - 2**970
"""The middle between the largest float64 and 2**1024: from here on an int rounds to infinity."""
_LARGEST_EXPONENT = math.log(sys.float_info.max)


def is_number(value: Datum) -> TypeGuard[int | float]:
    """An int or float; bools are no numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def to_float(value: int | float) -> float:
    """The float64 of a number; ints out of its range are infinite."""
    if abs(value) >= _OUT_OF_RANGE:
        return math.inf if value > 0 else -math.inf
    return float(value)


def missing_in(value: Datum) -> Missing | None:
    """Why a value cannot be compared as a whole: the first missing value in it."""
    return value if isinstance(value, Missing) else first_missing(_parts(value).values())


def _parts(value: Datum) -> Mapping[object, Datum]:
    """The parts by which a compound value is compared: a tensor's digest, a list's elements, a
    map's pairs.
    """
    match value:
        case Tensor(digest=digest):
            return {"digest": Missing.NOT_RECORDED if digest is None else digest}
        case tuple():
            return dict(enumerate(value))
        case Mapping():
            return value
    return {}


def first_missing(values: Iterable[Datum]) -> Missing | None:
    """The reason of the first of several values that is missing, or holds something missing."""
    return next((why for why in map(missing_in, values) if why is not None), None)


# --- equality -----------------------------------------------------------------------------------


_IN_PARTS = (Tensor, tuple, Mapping)


def equal(left: Datum, right: Datum) -> bool:
    """`==` of two known values: IEEE on floats, part by part where there are parts, by value else."""
    for kind in _IN_PARTS:
        if isinstance(left, kind) and isinstance(right, kind):
            ours, theirs = _parts(left), _parts(right)
            return ours.keys() == theirs.keys() and all(equal(ours[k], theirs[k]) for k in ours)
    if is_number(left) and is_number(right) and float in (type(left), type(right)):
        return to_float(left) == to_float(right)
    return type(left) is type(right) and left == right


def bits(value: Datum) -> Datum:
    """The value that `same` and `distinct` compare: equal for equal bits, and hashable."""
    for kind in _IN_PARTS:
        if isinstance(value, kind):
            return kind, frozenset((key, bits(part)) for key, part in _parts(value).items())
    if isinstance(value, frozenset):
        return frozenset(bits(item) for item in value)
    return type(value), struct.pack("d", value) if isinstance(value, float) else value


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
    match left, right:
        case (Missing() as why, _) | (_, Missing() as why):
            return why
        case Tensor(object=one), Tensor(object=other):
            return Missing.NOT_RECORDED if None in (one, other) else one == other
    return compare("==", left, right)


def member(item: Datum, collection: Datum) -> Datum:
    """`item in collection`."""
    match item, collection:
        case (Missing() as why, _) | (_, Missing() as why):
            return why
        case str(), str():
            return item in collection
        case Mapping(), Mapping():
            return conjunction(
                key in collection and compare("==", value, collection[key])
                for key, value in item.items()
            )
        case tuple() | frozenset(), Mapping() | tuple() | frozenset():
            return conjunction(_is_one_of(each, collection) for each in item)
        case _, Mapping() | tuple() | frozenset():
            return _is_one_of(item, collection)
    return Missing.NOT_RECORDED


def _is_one_of(item: Datum, collection: Collection[Datum]) -> Datum:
    """A key of a map, or an element. An absent element equals nothing; one that is not recorded might be the item."""
    if isinstance(collection, Mapping):
        return item if isinstance(item, Missing) else item in collection
    present = (each for each in collection if each is not Missing.ABSENT)
    return disjunction(compare("==", item, each) for each in present)


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
    """A value used as a bool. A value that is neither bool nor missing gives `NOT_RECORDED`."""
    return value if isinstance(value, bool | Missing) else Missing.NOT_RECORDED


# --- arithmetic and functions -------------------------------------------------------------------


def divide(left: float, right: float) -> float:
    """IEEE division."""
    try:
        return left / right
    except ZeroDivisionError:
        return left * math.copysign(math.inf, right)


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
    return math.nan if value < 0 else math.log(value) if value else -math.inf


def _exponential(value: int | float) -> float:
    return math.inf if value > _LARGEST_EXPONENT else math.exp(to_float(value))


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
    if not isinstance(classes, str) or missing_in(wanted) is not None:
        return first_missing((classes, wanted)) or Missing.NOT_RECORDED
    names = wanted if isinstance(wanted, tuple) else [wanted]
    return any(path in names for path in classes.split(" "))


def set_order(values: Iterable[Datum], order: Callable[[Ref], int]) -> tuple[Datum, ...]:
    """A set as a list: subjects in the order of `order`, other values sorted by value."""

    def key(value: Datum) -> tuple[str, float, str]:
        if isinstance(value, Ref):
            return ("ref", order(value), value.name)
        if is_number(value):
            return ("number", to_float(value), "")
        return (type(value).__name__, 0.0, str(value))

    return tuple(sorted(values, key=key))
