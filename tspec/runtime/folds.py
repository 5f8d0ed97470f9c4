"""Folds of many values to one, in order and in float64, so that every executor agrees to the bit.

`fold_list` folds a list without its absent elements; `fold_many` folds the values of a group's
members or of earlier instances. Both take the fold's name in the language.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tspec.builtin.folds import FOLDS
from tspec.builtin.numbers import as_float
from tspec.runtime.edges import Missing
from tspec.runtime.values import (
    ABSENT,
    NO_HISTORY,
    NOT_RECORDED,
    bits,
    conjunction,
    disjunction,
    first_missing,
    is_number,
    missing_in,
)
from tspec.values import Datum

_NUMBERS = frozenset((int, float))
"""Classes of numbers, without bool."""


def fold_list(name: str, values: Datum) -> Datum:
    """Fold a list, or give the reason why there is no result. For a list, `count` is its number of
    elements.
    """
    if values.__class__ is Missing:
        return values
    if isinstance(values, dict):
        values = tuple(values.values())
    if not isinstance(values, (tuple, frozenset, list)):
        return NOT_RECORDED
    present = [value for value in values if value is not ABSENT]
    if name == "count":
        for value in present:
            if value.__class__ is Missing:
                return value
        return len(present)
    return _fold(name, present)


def fold_many(name: str, values: Sequence[Datum]) -> Datum:
    """Fold one value of each member, or of each instance.

    `count` counts present values; for bools, the true ones.
    """
    if name == "count":
        known = [value for value in values if value is not ABSENT]
        for value in known:
            if value.__class__ is Missing:
                return value
        return sum(1 for value in known if value is not False)
    return _fold(name, values)


def _fold(name: str, values: Sequence[Datum]) -> Datum:
    decided = DECIDED_EARLY.get(name)
    if decided is not None:
        return decided(values)
    if not _NUMBERS.issuperset(map(type, values)):
        return first_missing(values) or NOT_RECORDED
    of = FOLDS[name].of
    assert of is not None, name
    return of(values) if values or name == "sum" else NO_HISTORY


def _all_bits(values: Sequence[Datum]) -> list[Datum]:
    """The bits of known values. If some are floats, ints are converted to float first."""
    known = [value for value in values if missing_in(value) is None]
    if any(value.__class__ is float for value in known):
        known = [as_float(value) if is_number(value) else value for value in known]
    return [bits(value) for value in known]


def _same(values: Sequence[Datum]) -> Datum:
    known = _all_bits(values)
    if len(set(known)) > 1:
        return False
    return first_missing(values) or True


def _distinct(values: Sequence[Datum]) -> Datum:
    known = _all_bits(values)
    if len(set(known)) < len(known):
        return False
    return first_missing(values) or True


DECIDED_EARLY: Mapping[str, Callable[[Sequence[Datum]], Datum]] = {
    "same": _same,
    "distinct": _distinct,
    "any": disjunction,
    "all": conjunction,
}
