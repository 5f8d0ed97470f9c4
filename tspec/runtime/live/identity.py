"""Objects by identity: a set and a map that ask them nothing and do not keep them alive."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
V = TypeVar("V")


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

    def __len__(self) -> int:
        return len(self._references)

    def alive(self) -> list[T]:
        """The objects that still exist, in the order in which they were added."""
        found = [reference() for reference in list(self._references.values())]
        return [thing for thing in found if thing is not None]


class IdentityMap(Generic[T, V]):
    """A value of each object that is alive, made when it is first asked for; objects are compared by `is`."""

    __slots__ = ("_held", "_make")

    def __init__(self, make: Callable[[], V]) -> None:
        self._make = make
        self._held: dict[int, tuple[weakref.ref[T], V]] = {}

    def of(self, thing: T) -> V:
        """The object's value, kept as long as it lives."""
        key, held = id(thing), self._held
        known = held.get(key)
        if known is None or known[0]() is not thing:
            known = held[key] = (
                weakref.ref(thing, lambda _: held.pop(key, None)),
                self._make(),
            )
        return known[1]

    def alive(self) -> list[tuple[T, V]]:
        """The objects that still exist, with their values."""
        found = [(reference(), value) for reference, value in list(self._held.values())]
        return [(thing, value) for thing, value in found if thing is not None]
