"""The order in which passes over a loader draw samples.

A sampler that shuffles begins two passes alike by chance only. With ten different samples that
happens at most once in ten factorial, 3.6 million, however small the data set or the batches are.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

ENOUGH = 10
"""The number of different samples after which two passes are compared."""
MOST = 200
"""The number of samples after which a pass that has drawn fewer different ones is not compared."""


class SampleOrders:
    """Compares how passes over each loader begin."""

    def __init__(self) -> None:
        self._drawn: weakref.WeakKeyDictionary[Any, list[int | str]] = weakref.WeakKeyDictionary()
        """The first samples of passes that have not drawn enough, by iterator."""
        self._first: weakref.WeakKeyDictionary[Any, list[int | str]] = weakref.WeakKeyDictionary()
        """The first samples of the latest pass that has drawn enough, by loader."""
        self._verdicts: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()
        """What is known of a pass, and was not asked for yet, by iterator."""

    def begins(self, iterator: Any) -> None:
        """A pass begins."""
        self._drawn[iterator] = []
        self._verdicts.pop(iterator, None)

    def forget(self) -> None:
        """Another training begins, which may draw in the order of the one before."""
        self._first.clear()

    def draws(self, loader: Any, iterator: Any, index: Any) -> None:
        """A pass draws the samples of a batch, by one index or by several."""
        drawn = self._drawn.get(iterator)
        if drawn is None:
            return
        for sample in indices(index):
            drawn.append(sample)
            if len(set(drawn)) >= ENOUGH or len(drawn) >= MOST:
                break
        else:
            return
        del self._drawn[iterator]
        if len(set(drawn)) < ENOUGH:
            return
        before = self._first.get(loader)
        self._first[loader] = drawn
        if before is not None:
            self._verdicts[iterator] = drawn == before

    def same_order(self, iterator: Any) -> bool | None:
        """Whether a pass draws in the order of the pass before; None if this is not known, or was
        asked for already.
        """
        return self._verdicts.pop(iterator, None)


def indices(index: Any) -> Iterator[int | str]:
    """The numbers and names of samples in what a sampler gave; streams give None."""
    plain = index.tolist() if hasattr(index, "tolist") else index
    if isinstance(plain, list | tuple):
        for each in plain:
            yield from indices(each)
    elif isinstance(plain, int | str):
        yield plain
