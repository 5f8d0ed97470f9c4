"""What earlier instances of the same rule, rank, group and subjects were: for `previous`, `first` and `over`."""

from __future__ import annotations

from collections import deque
from typing import Any

from tspec.runtime.values import NO_HISTORY


class Past:
    """The look-backs of one key. Each node of a rule (`previous(x)` is one) keeps its own state.

    Every method is called once for each instance, whatever its verdict.
    """

    __slots__ = ("_begun", "_firsts", "_latest", "_series", "rank")

    def __init__(self, rank: dict[int, Any]) -> None:
        self.rank = rank
        """The values at the first instance of the rule on this rank, whatever its subjects."""
        self._latest: dict[int, Any] = {}
        self._firsts: dict[int, Any] = {}
        self._series: dict[int, deque[tuple[int, Any]]] = {}
        self._begun: dict[int, int] = {}

    def previous(self, node: int, value: Any) -> Any:
        """The value at the instance before; this one's is kept for the next."""
        before = self._latest.get(node, NO_HISTORY)
        self._latest[node] = value
        return before

    def first(self, node: int, value: Any) -> Any:
        """The value at the first instance."""
        return self._firsts.setdefault(node, value)

    def first_on_rank(self, node: int, value: Any) -> Any:
        """The value at the first instance of the rule on this rank."""
        return self.rank.setdefault(node, value)

    def over(
        self, node: int, index: int, value: Any, span: tuple[int, int]
    ) -> tuple[list[Any], bool]:
        """Values of the instances within the last `span[0]` of a unit, and whether these are all there should be.

        `span[1]` is the stride in which instances come. Both go to `fold_many`.
        """
        length, stride = span
        begun = self._begun.setdefault(node, index)
        series = self._series.setdefault(node, deque())
        series.append((index, value))
        while series[0][0] <= index - length:
            series.popleft()
        return [item for at, item in series if at <= index], begun <= index - length + stride
