"""Folds over time that take one value after another. Each keeps only the state that its window
still needs.

A window holds the values whose index (step, epoch, microbatch) is among the last `length`. The
result equals `folds.fold_many` over these values in order, to the bit. Indices grow. The place of a
value with a smaller index than the one before is unknown, so its fold is unknown and the window
begins anew.

- `any`, `all`: where a deciding value was last seen, and why values are missing.
- `count`, `min`, `max`, `spread`, `same`: one summary per index (`monoids.py`).
- `distinct`: the bits of each value, and the index where they occurred last.
- `sum`, `mean`: the values and their running total. Float64 is added in order, so a total begins anew after values
  have left.
- All other folds of numbers (`std`): the values, all of which each instance reads. They need no more than a row of
  `tspec.builtin.folds`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Protocol

from tspec.builtin import folds
from tspec.builtin.numbers import NAN, as_float, ratio
from tspec.runtime.edges import Missing
from tspec.runtime.series.int_map import HIGH, LOW, IntMap
from tspec.runtime.series.monoids import (
    COUNT,
    HIGHEST,
    LOWEST,
    MISSING,
    NUMERIC,
    SAME,
    SPREAD,
    Number,
    TwoStackFold,
)
from tspec.runtime.values import NO_HISTORY, NOT_RECORDED, bits, is_number, missing_in
from tspec.values import Datum


class WindowFold(Protocol):
    """The values of one window."""

    def push(self, index: int, value: Datum) -> None:
        """Add a value. Its index is not below the last one's."""

    def drop(self, last: int) -> None:
        """Let go of all values up to an index, included."""

    def result(self, complete: bool) -> Datum:
        """The result of the fold. `complete` is true if no value is lacking."""


class FoldSeries:
    """The values of one fold at the instances of one choice of subjects."""

    __slots__ = ("_begun", "_fold", "_latest", "_length", "_stride")

    def __init__(self, name: str, length: int, stride: int) -> None:
        self._fold = FOLDS[name]()
        self._length = length
        self._stride = stride
        self._begun: int | None = None
        self._latest = -1

    def take(self, index: int, value: Datum) -> Datum:
        """Add the value of an instance, and return the result of the fold there."""
        if index < self._latest:
            self._fold.drop(self._latest)
            self._begun = self._latest + 1
            return NO_HISTORY
        if self._begun is None:
            self._begun = index
        if index > self._latest:
            self.forget(index)
        self._fold.push(index, value)
        return self._fold.result(self._begun <= index - self._length + self._stride)

    def forget(self, index: int) -> None:
        """An index is reached: drop the values that no later window holds."""
        if index > self._latest:
            self._fold.drop(index - self._length)
            self._latest = index


# --- conditions ---------------------------------------------------------------------------------


class ConditionFold:
    """Kleene's or (and) of conditions: one that is true (false) decides, else the first that is missing does."""

    __slots__ = ("_decided", "_decides", "_missing")

    def __init__(self, decides: bool) -> None:
        self._decides = decides
        self._decided = -1
        """The latest index of a value that decides."""
        self._missing: deque[tuple[int, Missing]] = deque()
        """The first value of each index that is missing."""

    def push(self, index: int, value: Datum) -> None:
        """Add a condition."""
        if value is self._decides:
            self._decided = index
        elif value.__class__ is not bool and not (self._missing and self._missing[-1][0] == index):
            why = value if value.__class__ is Missing else NOT_RECORDED
            self._missing.append((index, why))

    def drop(self, last: int) -> None:
        """Let go of the conditions up to an index."""
        if self._decided <= last:
            self._decided = -1
        while self._missing and self._missing[0][0] <= last:
            self._missing.popleft()

    def result(self, complete: bool) -> Datum:
        """The result of the fold. `complete` is true if no value is lacking."""
        if self._decided >= 0:
            return self._decides
        if self._missing:
            return self._missing[0][1]
        return not self._decides if complete else NO_HISTORY


# --- every value --------------------------------------------------------------------------------


class DistinctFold:
    """The last index of each known value's bits, and the largest index whose value occurred again
    later.

    A window contains two equal values exactly if a value in the window occurs again.
    """

    __slots__ = ("_as_floats", "_dropped", "_float", "_latest", "_missing", "_occurred", "_pruned")

    def __init__(self) -> None:
        self._occurred = LastOccurrences()
        self._as_floats: LastOccurrences | None = None
        """The same with ints as floats, while there are floats: then ints compare so."""
        self._float = NEVER
        """The index of the last float."""
        self._latest = NEVER
        self._dropped = NEVER
        self._pruned = 0
        """The number of values left after the last pruning."""
        self._missing = TwoStackFold(MISSING)

    def push(self, index: int, value: Datum) -> None:
        """Note where a value occurs."""
        self._missing.push(index, value)
        if missing_in(value) is not None:
            return
        self._latest = index
        key = _compact(bits(value))
        self._occurred.add(key, index)
        if key.__class__ is bytes:
            self._float = index
            if self._as_floats is None:
                self._as_floats = self._occurred.with_ints_as_floats()
                return
        if self._as_floats is not None:
            self._as_floats.add(_as_float_key(key), index)

    def drop(self, last: int) -> None:
        """Let go of values up to an index."""
        self._missing.drop(last)
        if self._latest <= last:
            self._occurred, self._as_floats, self._pruned = LastOccurrences(), None, 0
            self._float = self._latest = self._dropped = NEVER
            return
        self._dropped = max(self._dropped, last)
        if self._float <= last:
            self._as_floats = None
        if len(self._occurred) > 2 * self._pruned + 16:
            self._occurred = self._occurred.after(last)
            if self._as_floats is not None:
                self._as_floats = self._as_floats.after(last)
            self._pruned = len(self._occurred)

    def result(self, complete: bool) -> Datum:
        """False if two are equal; else true if none is missing."""
        compared = self._occurred if self._as_floats is None else self._as_floats
        if compared.repeated > self._dropped:
            return False
        return self._missing.result(complete) or True


NEVER = -1
"""Before every index."""


class LastOccurrences:
    """The last index of each key, and the largest index whose key occurred again later."""

    __slots__ = ("_ints", "_others", "repeated")

    def __init__(self) -> None:
        self._ints = IntMap()
        """Keys that are integers of 64 bits: digests are."""
        self._others: dict[Datum, int] = {}
        self.repeated = NEVER

    def __len__(self) -> int:
        return len(self._ints) + len(self._others)

    def add(self, key: Datum, index: int) -> None:
        """A key occurs. Its index is not below those before."""
        if key.__class__ is int and LOW <= key <= HIGH:
            before = self._ints.put(key, index)
        else:
            before = self._others.get(key)
            self._others[key] = index
        if before is not None:
            self.repeated = max(self.repeated, before)

    def after(self, dropped: int) -> LastOccurrences:
        """Those of the keys that occurred after an index."""
        found = LastOccurrences()
        for key, index in self._items():
            if index > dropped:
                found.add(key, index)
        found.repeated = self.repeated
        return found

    def with_ints_as_floats(self) -> LastOccurrences:
        """The last occurrences with int keys converted to floats."""
        found = LastOccurrences()
        for key, index in sorted(self._items(), key=lambda item: item[1]):
            found.add(_as_float_key(key), index)
        found.repeated = max(found.repeated, self.repeated)
        return found

    def _items(self) -> Iterator[tuple[Datum, int]]:
        yield from self._ints.items()
        yield from self._others.items()


def _compact(key: Datum) -> Datum:
    """Bits without the tuple, of an int as an int and of a float as bytes. All other bits are tuples or frozensets."""
    return (
        key[1] if key.__class__ is tuple and len(key) == 2 and key[0] in ("int", "float") else key
    )


def _as_float_key(key: Datum) -> Datum:
    return _compact(bits(as_float(key))) if key.__class__ is int else key


class OrderedFold:
    """Every value and the running total, for folds that read values in order."""

    __slots__ = ("_count", "_kinds", "_of", "_stale", "_total", "_values", "_whole")

    def __init__(self, of: Callable[[OrderedFold], Datum]) -> None:
        self._of = of
        self._values: deque[tuple[int, list[Number]]] = deque()
        self._kinds = TwoStackFold(NUMERIC)
        self._count = 0
        self._total = 0.0
        self._whole: int | None = 0
        """The sum as long as all values are ints."""
        self._stale = False

    def push(self, index: int, value: Datum) -> None:
        """Add a value to the total."""
        self._kinds.push(index, value)
        if not (self._values and self._values[-1][0] == index):
            self._values.append((index, []))
        number = value if is_number(value) else NAN
        self._values[-1][1].append(number)
        self._count += 1
        if not self._stale:
            self._add(number)

    def drop(self, last: int) -> None:
        """Let go of values up to an index."""
        self._kinds.drop(last)
        while self._values and self._values[0][0] <= last:
            self._count -= len(self._values.popleft()[1])
            self._stale = True

    def _add(self, number: Number) -> None:
        self._total += as_float(number)
        if self._whole is not None:
            self._whole = self._whole + number if number.__class__ is int else None

    def result(self, complete: bool) -> Datum:
        """The result of the fold, or the reason why it is unknown."""
        found = self._kinds.result(complete)
        return found if found.__class__ is Missing else self._of(self)

    @property
    def values(self) -> list[Number]:
        """All values in order."""
        return [value for _, values in self._values for value in values]

    @property
    def sum(self) -> Number:
        """Ints are added exactly, else float64 in order."""
        if self._stale:
            self._total, self._whole, self._stale = 0.0, 0, False
            for value in self.values:
                self._add(value)
        return self._total if self._whole is None else self._whole

    @property
    def mean(self) -> float:
        """The sum over their number."""
        return ratio(as_float(self.sum), float(self._count))


_KEPT: Mapping[str, Callable[[], WindowFold]] = {
    "any": partial(ConditionFold, decides=True),
    "all": partial(ConditionFold, decides=False),
    "count": partial(TwoStackFold, COUNT),
    "min": partial(TwoStackFold, LOWEST),
    "max": partial(TwoStackFold, HIGHEST),
    "spread": partial(TwoStackFold, SPREAD),
    "same": partial(TwoStackFold, SAME),
    "distinct": DistinctFold,
    "sum": partial(OrderedFold, lambda window: window.sum),
    "mean": partial(OrderedFold, lambda window: window.mean),
}


def _of_all(of: Callable[[Sequence[Number]], Datum]) -> Callable[[], WindowFold]:
    """A fold that reads all values of its window each time."""
    return partial(OrderedFold, lambda window: of(window.values))


READ_ANEW = {
    fold.name: _of_all(fold.of)
    for fold in folds.FOLDS.values()
    if fold.of is not None and fold.name not in _KEPT
}
"""Folds of numbers that keep only the values from one instance to the next."""
FOLDS: Mapping[str, Callable[[], WindowFold]] = {**_KEPT, **READ_ANEW}
