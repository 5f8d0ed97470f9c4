"""Kleene's logic, comparisons, membership and arithmetic on values that may be missing."""

from __future__ import annotations

import struct
from collections.abc import Callable, Collection, Iterable, Mapping
from types import FunctionType
from typing import Any, TypeGuard

from tspec.builtin.numbers import as_float, ratio
from tspec.runtime.edges import Missing, Ref
from tspec.runtime.tensors import TensorSample
from tspec.values import Datum, Truth

ABSENT = Missing.ABSENT
NOT_RECORDED = Missing.NOT_RECORDED
NO_HISTORY = Missing.NO_HISTORY


def is_number(value: Datum) -> TypeGuard[int | float]:
    """An int or a float; bools are no numbers."""
    kind = value.__class__
    return kind is float or kind is int


def missing_in(value: Datum) -> Missing | None:
    """Why a value cannot be compared as a whole: the first missing value in it."""
    kind = value.__class__
    if kind is float or kind is int or kind is str or kind is bool:
        return None
    if value.__class__ is Missing:
        return value
    if value.__class__ is TensorSample:
        digest = value.features.get("digest", NOT_RECORDED)
        return digest if digest.__class__ is Missing else None
    if isinstance(value, tuple):
        return first_missing(value)
    if isinstance(value, dict):
        return first_missing(value.values())
    return None


def first_missing(values: Iterable[Datum]) -> Missing | None:
    """The reason of the first value that is missing, or holds something missing."""
    for value in values:
        why = missing_in(value)
        if why is not None:
            return why
    return None


# Kleene's logic


def truth(value: Datum) -> Truth:
    """A value used as a bool. A value that is neither bool nor missing gives `NOT_RECORDED`."""
    if value is True or value is False or value.__class__ is Missing:
        return value
    return NOT_RECORDED


def negation(a: Datum) -> Truth:
    """Kleene's not."""
    if a is True:
        return False
    return True if a is False else truth(a)


def both(*items: Datum) -> Truth:
    """Kleene's and: false wins over missing, missing over true. A function among the items is asked in its turn."""
    reason: Truth = True
    for item in items:
        value = item() if item.__class__ is FunctionType else item
        if value is False:
            return False
        if value is not True and reason is True:
            reason = truth(value)
    return reason


def either(*items: Datum) -> Truth:
    """Kleene's or: true wins over missing, missing over false. A function among the items is asked in its turn."""
    reason: Truth = False
    for item in items:
        value = item() if item.__class__ is FunctionType else item
        if value is True:
            return True
        if value is not False and reason is False:
            reason = truth(value)
    return reason


def conjunction(items: Iterable[Datum]) -> Truth:
    """Kleene's and of many; true of none."""
    reason: Truth = True
    for item in items:
        if item is False:
            return False
        if item is not True and reason is True:
            reason = truth(item)
    return reason


def disjunction(items: Iterable[Datum]) -> Truth:
    """Kleene's or of many; false of none."""
    reason: Truth = False
    for item in items:
        if item is True:
            return True
        if item is not False and reason is False:
            reason = truth(item)
    return reason


def implied(a: Datum, b: Datum) -> Truth:
    """Kleene's implication, `not a or b`."""
    return either(negation(a), b)


def present(x: Datum) -> Truth:
    """False if absent, missing if otherwise missing, else true."""
    if x.__class__ is Missing:
        return False if x is ABSENT else x
    return True


# Equality


def is_equal(a: Datum, b: Datum) -> bool:
    """`==` of two known values: floats as IEEE, tensors by digest, all else by value."""
    if is_number(a) and is_number(b):
        return bool(a == b) if a.__class__ is b.__class__ else as_float(a) == as_float(b)
    if a.__class__ is TensorSample and b.__class__ is TensorSample:
        return bool(a.features.get("digest") == b.features.get("digest"))
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(is_equal, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(is_equal(a[key], b[key]) for key in a)
    return a.__class__ is b.__class__ and bool(a == b)


def bits(value: Datum) -> Datum:
    """The bits that `same` and `distinct` compare: NaN equals itself, and 0.0 differs from -0.0."""
    if value.__class__ is float:
        return ("float", struct.pack("<d", value))
    if value.__class__ is TensorSample:
        return ("tensor", value.features.get("digest"))
    if isinstance(value, tuple):
        return tuple(map(bits, value))
    if isinstance(value, frozenset):
        return frozenset(map(bits, value))
    if isinstance(value, dict):
        return ("map", frozenset((key, bits(item)) for key, item in value.items()))
    return (value.__class__.__name__, value)


_SIMPLE = frozenset((bool, int, float, str))


def equal(a: Datum, b: Datum) -> Truth:
    """`a == b`."""
    if a.__class__ is b.__class__ and a.__class__ in _SIMPLE:
        return a == b
    why = missing_in(a) or missing_in(b)
    return is_equal(a, b) if why is None else why


def unequal(a: Datum, b: Datum) -> Truth:
    """`a != b`."""
    if a.__class__ is b.__class__ and a.__class__ in _SIMPLE:
        return a != b
    why = missing_in(a) or missing_in(b)
    return not is_equal(a, b) if why is None else why


def identical(a: Datum, b: Datum) -> Truth:
    """`x is y`: tensors by their object on this rank, all else by value."""
    if a.__class__ is TensorSample and b.__class__ is TensorSample:
        one: Datum = a.features.get("object", NOT_RECORDED)
        other: Datum = b.features.get("object", NOT_RECORDED)
        for side in (one, other):
            if side.__class__ is Missing:
                return side
        return one == other
    for side in (a, b):
        if side.__class__ is Missing:
            return side
    return equal(a, b)


# Order and arithmetic


def _ordering(compare: Callable[[Any, Any], bool]) -> Callable[[Datum, Datum], Truth]:
    def ordered(a: Datum, b: Datum) -> Truth:
        if a.__class__ is float and b.__class__ is float:
            return compare(a, b)
        why = missing_in(a) or missing_in(b)
        if why is not None:
            return why
        if is_number(a) and is_number(b):
            if a.__class__ is b.__class__:
                return compare(a, b)
            return compare(as_float(a), as_float(b))
        return compare(a, b) if isinstance(a, str) and isinstance(b, str) else NOT_RECORDED

    return ordered


less = _ordering(lambda a, b: a < b)
at_most = _ordering(lambda a, b: a <= b)
greater = _ordering(lambda a, b: a > b)
at_least = _ordering(lambda a, b: a >= b)


def _arithmetic(operation: Callable[[float, float], float]) -> Callable[[Datum, Datum], Datum]:
    def operate(a: Datum, b: Datum) -> Datum:
        if a.__class__ is float and b.__class__ is float:
            return operation(a, b)
        why = missing_in(a) or missing_in(b)
        if why is not None:
            return why
        if not (is_number(a) and is_number(b)):
            return NOT_RECORDED
        if a.__class__ is b.__class__:
            return operation(a, b)
        return operation(as_float(a), as_float(b))

    return operate


plus = _arithmetic(lambda a, b: a + b)
minus = _arithmetic(lambda a, b: a - b)
times = _arithmetic(lambda a, b: a * b)


quotient = _arithmetic(lambda a, b: ratio(as_float(a), as_float(b)))


def opposite(a: Datum) -> Datum:
    """`-a`."""
    if is_number(a):
        return -a
    return a if a.__class__ is Missing else NOT_RECORDED


# Membership and elements


def contained(item: Datum, collection: Datum) -> Truth:
    """`x in y`: an element by value; of a collection every element; of a map every pair."""
    if item.__class__ is Ref and collection.__class__ is frozenset and item in collection:
        return True
    if item.__class__ is Missing:
        return item
    if collection.__class__ is Missing:
        return collection
    if isinstance(collection, str):
        return item in collection if isinstance(item, str) else NOT_RECORDED
    if isinstance(collection, dict):
        return _in_map(item, collection)
    if not isinstance(collection, (tuple, frozenset)):
        return NOT_RECORDED
    if isinstance(item, (tuple, frozenset)):
        if _are_subjects_of(item, collection):
            return True
        return conjunction(_element(each, collection) for each in item)
    return _element(item, collection)


_SUBJECTS = frozenset((Ref,))


def _are_subjects_of(items: Collection[Datum], collection: Collection[Datum]) -> bool:
    """A set of subjects is part of another set: they are compared by their hashes, all at once."""
    return (
        isinstance(items, frozenset)
        and isinstance(collection, frozenset)
        and items <= collection
        and {each.__class__ for each in items} <= _SUBJECTS
    )


def _element(item: Datum, collection: tuple[Datum, ...] | frozenset[Datum]) -> Truth:
    if isinstance(collection, frozenset) and not is_number(item) and item in collection:
        return True
    return disjunction(equal(item, each) for each in collection if each is not ABSENT)


def _in_map(item: Datum, collection: Mapping[Datum, Datum]) -> Truth:
    if isinstance(item, dict):
        return conjunction(
            equal(value, collection[key]) if key in collection else False
            for key, value in item.items()
        )
    if isinstance(item, (tuple, frozenset)):
        return conjunction(x if x.__class__ is Missing else x in collection for x in item)
    return item in collection


def indexed(base: Datum, index: Datum) -> Datum:
    """`x[0]`, `x[-1]`, `m["key"]`; absent where there is no such element."""
    if base.__class__ is Missing:
        return base
    if index.__class__ is Missing:
        return index
    if isinstance(base, dict):
        return base.get(index, ABSENT)
    if not (isinstance(base, tuple) and index.__class__ is int):
        return NOT_RECORDED
    return base[index] if -len(base) <= index < len(base) else ABSENT
