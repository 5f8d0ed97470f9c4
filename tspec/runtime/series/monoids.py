"""Summaries of values that can be merged, and their fold over a window from two stacks.

A value costs the same whatever the length of the window: summaries of neighbours are merged.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeAlias, TypeVar

from tspec.builtin.numbers import NAN, as_float
from tspec.runtime.edges import Missing
from tspec.runtime.values import ABSENT, NO_HISTORY, NOT_RECORDED, bits, is_number, missing_in
from tspec.values import Datum

Number: TypeAlias = int | float
S = TypeVar("S")
"""A summary of values."""


class Monoid(NamedTuple, Generic[S]):
    """A summary of values that can be merged. `merge` is associative; `finish` gives the fold's
    value.
    """

    of: Callable[[Datum], S]
    merge: Callable[[S, S], S]
    empty: S
    finish: Callable[[S], Datum]


class TwoStackFold(Generic[S]):
    """Summaries by index in two stacks: `_front` is merged from its end, `_back` from its begin."""

    __slots__ = ("_back", "_empty", "_finish", "_front", "_merge", "_of", "_sum")

    def __init__(self, summary: Monoid[S]) -> None:
        self._of, self._merge, self._empty, self._finish = summary
        self._front: list[tuple[int, S]] = []
        """The oldest last, each merged with all that follow in the stack."""
        self._back: list[tuple[int, S]] = []
        self._sum = self._empty
        """All of `_back` merged."""

    def push(self, index: int, value: Datum) -> None:
        """Add a value to the summary of its index."""
        new = self._of(value)
        if self._back and self._back[-1][0] == index:
            self._back[-1] = (index, self._merge(self._back[-1][1], new))
        else:
            self._back.append((index, new))
        self._sum = self._merge(self._sum, new)

    def drop(self, last: int) -> None:
        """Let go of the summaries up to an index."""
        front = self._front
        while front and front[-1][0] <= last:
            front.pop()
        if front or not self._back or self._back[0][0] > last:
            return
        merged = self._empty
        for index, one in reversed(self._back):
            if index <= last:
                break
            merged = self._merge(one, merged)
            front.append((index, merged))
        self._back.clear()
        self._sum = self._empty

    def result(self, complete: bool) -> Datum:
        """The value of the merged summaries. `complete` is true if no value is lacking."""
        found = self._merge(self._front[-1][1] if self._front else self._empty, self._sum)
        return self._finish(found if complete else self._merge(found, self._of(NO_HISTORY)))


def _unchanged(found: S) -> S:
    return found


def _counted(value: Datum) -> int | Missing:
    if value.__class__ is Missing and value is not ABSENT:
        return value
    return 0 if value is ABSENT or value is False else 1


def _counts_merged(a: int | Missing, b: int | Missing) -> int | Missing:
    if a.__class__ is int and b.__class__ is int:
        return a + b
    return a if a.__class__ is Missing else b


COUNT: Monoid[int | Missing] = Monoid(_counted, _counts_merged, 0, _unchanged)


class NumberSummary(NamedTuple):
    """A summary of values that should be numbers: the reason of the first missing one, whether all
    others are numbers, the extremes.
    """

    missing: Missing | None = None
    numeric: bool = True
    low: Number | None = None
    high: Number | None = None


NUMBERS = NumberSummary()


def _number(value: Datum) -> NumberSummary:
    if is_number(value):
        return NumberSummary(None, True, value, value)
    why = missing_in(value)
    return NumberSummary(why, why is not None)


def _numbers_merged(a: NumberSummary, b: NumberSummary) -> NumberSummary:
    if a is NUMBERS:
        return b
    if b is NUMBERS:
        return a
    return NumberSummary(
        a.missing or b.missing,
        a.numeric and b.numeric,
        _extreme(min, a.low, b.low),
        _extreme(max, a.high, b.high),
    )


def _extreme(
    choose: Callable[[Number, Number], Number], a: Number | None, b: Number | None
) -> Number | None:
    """The smaller or greater of two; the first of equals, NaN if one is."""
    if a is None or b is None:
        return b if a is None else a
    return NAN if a != a or b != b else choose(a, b)


def _extremes(of: Callable[[NumberSummary], Datum]) -> Monoid[NumberSummary]:
    def finish(found: NumberSummary) -> Datum:
        if found.missing is not None:
            return found.missing
        return of(found) if found.numeric else NOT_RECORDED

    return Monoid(_number, _numbers_merged, NUMBERS, finish)


def _spread(found: NumberSummary) -> Number | None:
    if found.low is None or found.high is None:
        return None
    return found.high - found.low


LOWEST = _extremes(lambda found: found.low)
HIGHEST = _extremes(lambda found: found.high)
SPREAD = _extremes(_spread)
NUMERIC = _extremes(_unchanged)
"""Why the values are not all numbers, if they are not."""


class BitsSummary(NamedTuple):
    """Compares the bits of values: `exact` for all values, `rounded` with ints as floats. The
    latter counts if there are floats.
    """

    missing: Missing | None = None
    floats: bool = False
    exact: Datum = None
    rounded: Datum = None


ALIKE = BitsSummary()
DIFFERENT = "different"
"""Stands for bits that are not the same; bits are tuples."""


def _rounded(value: Datum) -> Datum:
    return bits(as_float(value)) if is_number(value) else bits(value)


def _alike(value: Datum) -> BitsSummary:
    why = missing_in(value)
    if why is not None:
        return BitsSummary(why)
    return BitsSummary(None, value.__class__ is float, bits(value), _rounded(value))


def _alike_merged(a: BitsSummary, b: BitsSummary) -> BitsSummary:
    if a is ALIKE:
        return b
    if b is ALIKE:
        return a
    return BitsSummary(
        a.missing or b.missing,
        a.floats or b.floats,
        _common(a.exact, b.exact),
        _common(a.rounded, b.rounded),
    )


def _common(a: Datum, b: Datum) -> Datum:
    if a is None or b is None:
        return b if a is None else a
    return a if a == b else DIFFERENT


def _same(found: BitsSummary) -> Datum:
    if (found.rounded if found.floats else found.exact) is DIFFERENT:
        return False
    return found.missing or True


SAME = Monoid(_alike, _alike_merged, ALIKE, _same)
MISSING: Monoid[Missing | None] = Monoid(missing_in, lambda a, b: a or b, None, _unchanged)
"""Why the first missing value is."""
