"""Objects numbered in order of creation, without keeping them alive."""

from __future__ import annotations

import weakref
from typing import Any


class NumberedObjects:
    """Gives each object of a kind a number, and the name `kind.number`."""

    __slots__ = ("_by_id", "count", "kind")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.count = 0
        self._by_id: dict[int, tuple[weakref.ref[Any] | Any, int]] = {}

    def number(self, thing: Any) -> int:
        """The object's number; a new one if it was never seen."""
        known = self._by_id.get(id(thing))
        if known is not None and _same(known[0], thing):
            return known[1]
        number, self.count = self.count, self.count + 1
        try:
            held = weakref.ref(thing)
        except TypeError:  # objects with slots cannot be referred to weakly
            held = thing
        self._by_id[id(thing)] = (held, number)
        return number

    def revive(self, thing: Any) -> None:
        """A numbered object that was about to be freed lives on: the collector has cut references to it."""
        known = self._by_id.get(id(thing))
        if known is not None:
            self._by_id[id(thing)] = (weakref.ref(thing), known[1])

    def departing(self, thing: Any) -> int | None:
        """The number of an object that is about to be freed: the collector may have cut references to it."""
        known = self._by_id.get(id(thing))
        return None if known is None else known[1]

    def knows(self, thing: Any) -> bool:
        """The object has a number already."""
        known = self._by_id.get(id(thing))
        return known is not None and _same(known[0], thing)

    def held(self, thing: Any) -> Any:
        """A function that returns the object as long as it exists."""
        self.number(thing)
        held = self._by_id[id(thing)][0]
        return held if isinstance(held, weakref.ref) else lambda: held

    def name(self, thing: Any) -> str:
        """`optimizer.0`."""
        return f"{self.kind}.{self.number(thing)}"

    def alive(self) -> dict[str, Any]:
        """Name and object of all that still exist, in order."""
        found = {}
        for held, number in sorted(self._by_id.values(), key=lambda pair: pair[1]):
            thing = held() if isinstance(held, weakref.ref) else held
            if thing is not None:
                found[f"{self.kind}.{number}"] = thing
        return found


def _same(held: Any, thing: Any) -> bool:
    return (held() if isinstance(held, weakref.ref) else held) is thing
