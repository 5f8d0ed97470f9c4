"""A set of objects by identity, which asks them nothing and does not keep them alive."""

from __future__ import annotations

import weakref
from typing import Generic, TypeVar

T = TypeVar("T")


class IdentitySet(Generic[T]):
    """Objects that are alive, compared by `is`: their own `__hash__` and `__eq__` may fail."""

    __slots__ = ("_references",)

    def __init__(self) -> None:
        self._references: dict[int, weakref.ref[T]] = {}

    def add(self, thing: T) -> None:
        """Hold an object for as long as it lives."""
        if thing in self:
            return
        key, held = id(thing), self._references
        held[key] = weakref.ref(thing, lambda _: held.pop(key, None))

    def __contains__(self, thing: T) -> bool:
        known = self._references.get(id(thing))
        return known is not None and known() is thing

    def alive(self) -> list[T]:
        """The objects that still exist, in the order in which they were added."""
        found = [reference() for reference in list(self._references.values())]
        return [thing for thing in found if thing is not None]
