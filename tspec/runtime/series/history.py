"""Values of earlier instances with the same rule, rank, group and subjects: for `previous`, `first` and `over`."""

from __future__ import annotations

from typing import NamedTuple

from tspec.runtime.series.sliding import FoldSeries
from tspec.runtime.values import NO_HISTORY
from tspec.values import Datum

Index = tuple[int, int, int]
"""The place of an instance for `over`: its step, its epoch, the microbatches so far."""
UNITS = {"step": 0, "epoch": 1, "microbatch": 2}


class TimeFold(NamedTuple):
    """A fold over time, as generated code describes it."""

    node: int
    """The number of this node among the rule's stateful nodes."""
    name: str
    last: int
    """The number of units in the window, the current one included."""
    unit: str
    stride: int = 1
    """The number of units between two instances."""


class SubjectHistory:
    """The history of one choice of subjects. Each node of a rule (`previous(x)` is one) keeps its own state.

    Every method is called once for each instance, whatever its verdict.
    """

    __slots__ = ("_firsts", "_latest", "_series", "rank")

    def __init__(self, rank: dict[int, Datum]) -> None:
        self.rank = rank
        """The values at the first instance of the rule on this rank, whatever its subjects."""
        self._latest: dict[int, Datum] = {}
        self._firsts: dict[int, Datum] = {}
        self._series: dict[int, tuple[int, FoldSeries]] = {}
        """The place of each fold's unit in an index, and its values."""

    def previous(self, node: int, value: Datum) -> Datum:
        """The value at the instance before; this one's is kept for the next."""
        before = self._latest.get(node, NO_HISTORY)
        self._latest[node] = value
        return before

    def first(self, node: int, value: Datum) -> Datum:
        """The value at the first instance."""
        return self._firsts.setdefault(node, value)

    def first_on_rank(self, node: int, value: Datum) -> Datum:
        """The value at the first instance of the rule on this rank."""
        return self.rank.setdefault(node, value)

    def over(self, fold: TimeFold, index: Index, value: Datum) -> Datum:
        """The result of a fold over time at this instance."""
        place = UNITS[fold.unit]
        found = self._series.get(fold.node)
        if found is None:
            series = FoldSeries(fold.name, fold.last, fold.stride)
            found = self._series[fold.node] = (place, series)
        return found[1].take(index[place], value)

    def start_over(self) -> None:
        """Steps were left out: no earlier value counts but the first."""
        self._latest.clear()
        self._series.clear()

    def forget(self, index: Index) -> None:
        """Drop the values that no window from this index on contains."""
        for place, series in self._series.values():
            series.forget(index[place])
