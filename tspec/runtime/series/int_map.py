"""A map from 64-bit integers to integers in sorted columns: some 20 bytes an entry, where a dict takes 64 to 140."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

CHUNK = 1024
"""The number of entries at which a chunk is split in two."""
LOW, HIGH = -(2**63), 2**63 - 1
"""The smallest and the largest key."""


class IntMap:
    """Entries by key, in chunks: an insertion moves the entries of one chunk only."""

    __slots__ = ("_chunks", "_lows", "_size")

    def __init__(self) -> None:
        self._chunks: list[tuple[array[int], array[int]]] = [(array("q"), array("q"))]
        """Keys and values of each chunk."""
        self._lows = array("q", [LOW])
        """The smallest key that each chunk may hold."""
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def put(self, key: int, value: int) -> int | None:
        """Set the value of a key. Returns the value before, if there was one."""
        number = bisect_right(self._lows, key) - 1
        keys, values = self._chunks[number]
        place = bisect_left(keys, key)
        if place < len(keys) and keys[place] == key:
            before = values[place]
            values[place] = value
            return before
        keys.insert(place, key)
        values.insert(place, value)
        self._size += 1
        if len(keys) >= CHUNK:
            self._split(number)
        return None

    def _split(self, number: int) -> None:
        keys, values = self._chunks[number]
        half = len(keys) // 2
        self._chunks[number : number + 1] = [
            (keys[:half], values[:half]),
            (keys[half:], values[half:]),
        ]
        self._lows.insert(number + 1, keys[half])

    def items(self) -> Iterator[tuple[int, int]]:
        """All entries in order of their keys."""
        for keys, values in self._chunks:
            yield from zip(keys, values, strict=True)
