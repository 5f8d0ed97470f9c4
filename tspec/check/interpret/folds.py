"""Folds of many values to one, and the features of many tensors as one.

Page: "Values", the lines on lists and on features of a collection.
"""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from tspec.builtin.features import DOTTED, FEATURES
from tspec.check.interpret.values import (
    Datum,
    all_bits,
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
    total = 0.0
    for number in numbers:
        total += to_float(number)
    return total


def _mean(numbers: Sequence[int | float]) -> float:
    return divide(to_float(_sum(numbers)), len(numbers))


def _std(numbers: Sequence[int | float]) -> float:
    """The population's: the root of the mean squared difference from the mean."""
    mean = _mean(numbers)
    total = 0.0
    for number in numbers:
        difference = to_float(number) - mean
        total += difference * difference
    return math.sqrt(total / len(numbers))


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
    if name == "zeros":
        return _zeros([tensor])
    return _recorded(tensor, name)


def _recorded(tensor: Datum, name: str) -> Datum:
    """A feature as it was recorded (`zeros` as a count)."""
    if isinstance(tensor, Missing):
        return tensor
    value = getattr(tensor, name, None)
    return Missing.NOT_RECORDED if value is None else value


def _of_many(name: str, tensors: Sequence[Datum]) -> Datum:
    if name == "finite":
        return conjunction(feature(name, tensor) for tensor in tensors)
    if name == "zeros":
        return _zeros(tensors)
    if name == "mean":
        return _mean_of_many(tensors)
    if name == "std":
        return first_missing_tensor(tensors) or Missing.NOT_RECORDED
    values = [_recorded(tensor, name) for tensor in tensors]
    why = first_missing(values)
    if why is not None:
        return why
    if name == "digest":
        return combine_digests([value for value in values if isinstance(value, int)])
    if name == "norm":
        squares = [to_float(value) * to_float(value) for value in values if is_number(value)]
        return math.sqrt(_sum([0.0, *squares]))
    return _fold(str(FEATURES[name].many), values, complete=True)


def first_missing_tensor(tensors: Sequence[Datum]) -> Missing | None:
    """The reason of the first tensor that is missing itself."""
    return next((tensor for tensor in tensors if isinstance(tensor, Missing)), None)


def _zeros(tensors: Sequence[Datum]) -> Datum:
    """The fraction of exact zeros; of no elements 0."""
    zeros = [_recorded(tensor, "zeros") for tensor in tensors]
    numel = [_recorded(tensor, "numel") for tensor in tensors]
    why = first_missing([*zeros, *numel])
    if why is not None:
        return why
    total = _sum([value for value in numel if is_number(value)])
    count = _sum([value for value in zeros if is_number(value)])
    return divide(to_float(count), to_float(total)) if total else 0.0


def _mean_of_many(tensors: Sequence[Datum]) -> Datum:
    sums = [_recorded(tensor, "sum") for tensor in tensors]
    numel = [_recorded(tensor, "numel") for tensor in tensors]
    why = first_missing([*sums, *numel])
    if why is not None:
        return why
    if not tensors:
        return Missing.NO_HISTORY
    total = _sum([value for value in sums if is_number(value)])
    return divide(to_float(total), to_float(_sum([n for n in numel if is_number(n)])))


def combine_digests(digests: Sequence[int]) -> int:
    """The digest of several tensors in order, as one."""
    mixed = 0x9E3779B97F4A7C15
    for digest in digests:
        mixed = (mixed ^ (digest % 2**64)) * 0x100000001B3 % 2**64
    return mixed - 2**64 if mixed >= 2**63 else mixed
