"""Folds of many values to one, and the features of many tensors as one.

Page: "Values", the lines on lists and on features of a collection.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from itertools import chain
from operator import add
from typing import Any

from tspec.builtin.features import DOTTED, FEATURES
from tspec.check.interpret.values import (
    Datum,
    all_bits,
    arithmetic,
    conjunction,
    disjunction,
    divide,
    first_missing,
    is_number,
    missing_in,
    to_float,
)
from tspec.trace.model import Missing, Tensor


def fold_list(name: str, values: Sequence[Datum]) -> Datum:
    """Fold a list: absent elements are left out of it."""
    present = [value for value in values if value is not Missing.ABSENT]
    if name == "count":
        return next((v for v in present if isinstance(v, Missing)), len(present))
    return _fold(name, present, complete=True)


def fold_many(name: str, values: Sequence[Datum], complete: bool = True) -> Datum:
    """Fold the values of a group's members, or of earlier instances; `complete`: none lacks.

    `count` counts present values, of bools the true ones.
    """
    if name == "count":
        known = [value for value in values if value is not Missing.ABSENT]
        why = next((value for value in known if isinstance(value, Missing)), None)
        if why is None and not complete:
            why = Missing.NO_HISTORY
        return sum(1 for value in known if value is not False) if why is None else why
    return _fold(name, values, complete)


def _fold(name: str, values: Sequence[Datum], complete: bool) -> Datum:
    if name in DECIDED_EARLY:
        lacking = [] if complete else [Missing.NO_HISTORY]
        return DECIDED_EARLY[name]([*values, *lacking])
    why = first_missing(values) or (None if complete else Missing.NO_HISTORY)
    if why is not None:
        return why
    numbers = [value for value in values if is_number(value)]
    if len(numbers) < len(values):
        return Missing.NOT_RECORDED
    return NUMERIC[name](numbers) if numbers or name == "sum" else Missing.NO_HISTORY


# --- folds that some known values decide --------------------------------------------------------


def _same(values: Sequence[Datum]) -> Datum:
    known = all_bits(value for value in values if missing_in(value) is None)
    if any(each != known[0] for each in known):
        return False
    return first_missing(values) or True


def _distinct(values: Sequence[Datum]) -> Datum:
    known = all_bits(value for value in values if missing_in(value) is None)
    if any(count > 1 for count in Counter(known).values()):
        return False
    return first_missing(values) or True


DECIDED_EARLY: Mapping[str, Callable[[Sequence[Datum]], Datum]] = {
    "same": _same,
    "distinct": _distinct,
    "any": disjunction,
    "all": conjunction,
}


# --- folds of numbers ---------------------------------------------------------------------------


def _sum(numbers: Sequence[int | float]) -> int | float:
    """In order in float64; ints exactly."""
    if all(isinstance(number, int) for number in numbers):
        return sum(numbers)
    return reduce(add, map(to_float, numbers), 0.0)


def _mean(numbers: Sequence[int | float]) -> float:
    return divide(to_float(_sum(numbers)), len(numbers))


def _std(numbers: Sequence[int | float]) -> float:
    """The population's: the root of the mean squared difference from the mean."""
    mean = _mean(numbers)
    differences = [to_float(number) - mean for number in numbers]
    return math.sqrt(_mean([each * each for each in differences]))


def _min(numbers: Sequence[int | float]) -> int | float:
    return math.nan if any(number != number for number in numbers) else min(numbers)


def _max(numbers: Sequence[int | float]) -> int | float:
    return math.nan if any(number != number for number in numbers) else max(numbers)


def _median(numbers: Sequence[int | float]) -> float:
    """The middle value, or the mean of the two middle ones; a zero is 0.0."""
    floats = list(map(to_float, numbers))
    if any(math.isnan(number) for number in floats):
        return math.nan
    found = statistics.median(floats)
    return 0.0 if found == 0.0 else found


def _spread(numbers: Sequence[int | float]) -> int | float:
    return _max(numbers) - _min(numbers)


NUMERIC: Mapping[str, Callable[[Sequence[int | float]], int | float]] = {
    "sum": _sum, "mean": _mean, "std": _std, "min": _min, "max": _max, "spread": _spread,
    "median": _median,
}  # fmt: skip


# --- features -----------------------------------------------------------------------------------


def feature(name: str, tensor: Datum) -> Datum:
    """One feature of a tensor, or of a list of tensors as one tensor."""
    if isinstance(tensor, Missing):
        return tensor
    if isinstance(tensor, tuple):
        present = [item for item in tensor if item is not Missing.ABSENT]
        if name in DOTTED:
            return tuple(feature(name, item) for item in present)
        return _of_many(name, present)
    if name == "finite" and is_number(tensor):
        return math.isfinite(tensor)
    if not isinstance(tensor, Tensor):
        return Missing.NOT_RECORDED
    return OF_MANY["zeros"]([tensor]) if name == "zeros" else _recorded(tensor, name)


def _recorded(tensor: Datum, name: str) -> Datum:
    """A feature as it was recorded (`zeros` as a count)."""
    if isinstance(tensor, Missing):
        return tensor
    value = getattr(tensor, name, None)
    return Missing.NOT_RECORDED if value is None else value


def _of_many(name: str, tensors: Sequence[Datum]) -> Datum:
    """A feature of a collection: by its own function if it has one, else by a fold of the feature
    of each tensor.
    """
    if name in OF_MANY:
        return OF_MANY[name](tensors)
    return _fold(str(FEATURES[name].many), _of_each(name, tensors), complete=True)


def _of_each(name: str, tensors: Sequence[Datum]) -> list[Datum]:
    return [_recorded(tensor, name) for tensor in tensors]


def _per_element(name: str, tensors: Sequence[Datum]) -> Datum:
    """The sum of a feature over the number of elements; NaN of no elements."""
    parts = [_of_each(name, tensors), _of_each("numel", tensors)]
    total, numel = (fold_list("sum", part) for part in parts)
    return first_missing(chain(*parts)) or arithmetic("/", total, numel)


def _zeros(tensors: Sequence[Datum]) -> Datum:
    found = _per_element("zeros", tensors)
    return 0.0 if found != found else found


def _mean_of_many(tensors: Sequence[Datum]) -> Datum:
    return _per_element("sum", tensors) if tensors else Missing.NO_HISTORY


def _of_known(
    name: str, of: Callable[[Sequence[Any]], Datum]
) -> Callable[[Sequence[Datum]], Datum]:
    """A feature of a collection from that of each, none of them missing."""

    def found(tensors: Sequence[Datum]) -> Datum:
        values = _of_each(name, tensors)
        why = first_missing(values)
        return of(values) if why is None else why

    return found


def combine_digests(digests: Sequence[int]) -> int:
    """The digest of several tensors in order, as one."""
    mixed = reduce(
        lambda h, d: (h ^ d % 2**64) * 0x100000001B3 % 2**64, digests, 0x9E3779B97F4A7C15
    )
    return int.from_bytes(mixed.to_bytes(8, "big"), "big", signed=True)


def _norm(norms: Sequence[int | float]) -> float:
    return math.sqrt(_sum([0.0, *(each * each for each in map(to_float, norms))]))


OF_MANY: Mapping[str, Callable[[Sequence[Datum]], Datum]] = {
    "finite": lambda tensors: conjunction(feature("finite", tensor) for tensor in tensors),
    "zeros": _zeros,
    "mean": _mean_of_many,
    "std": lambda tensors: next(
        (tensor for tensor in tensors if isinstance(tensor, Missing)), Missing.NOT_RECORDED
    ),
    "digest": _of_known("digest", combine_digests),
    "norm": _of_known("norm", _norm),
}
"""Features of a collection that are no fold of the features of its tensors."""
