"""The positions of Python's and numpy's generators in their streams, and whether a loaded state was
taken over.

Both are Mersenne twisters: 624 numbers are drawn in order, and the next 624 follow from them. Their
states hold no seed.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LENGTH = 624
BLOCKS = 2_000
"""The number of blocks of a stream that are searched."""


@dataclass(frozen=True, slots=True)
class TwisterState:
    """The numbers of the current block. The first `taken` of them were drawn."""

    block: tuple[int, ...]
    taken: int


def twister_state(value: Any) -> TwisterState | None:
    """The state that `random.getstate()` or `numpy.random.get_state()` gave, with either value of `legacy`."""
    if isinstance(value, Mapping):
        state = value.get("state")
        if value.get("bit_generator") != "MT19937" or not isinstance(state, Mapping):
            return None
        return _of_parts(state.get("key"), state.get("pos"))
    if not isinstance(value, (tuple, list)):
        return None
    if len(value) == 5 and isinstance(value[0], str) and value[0] == "MT19937":
        return _of_parts(value[1], value[2])
    if len(value) == 3 and isinstance(value[0], int) and value[0] == 3:
        words = value[1]
        if isinstance(words, (tuple, list)) and len(words) == LENGTH + 1:
            return _of_parts(words[:-1], words[-1])
    return None


def states_here() -> list[TwisterState]:
    """The states of this process's generators: Python's, and numpy's if it is imported."""
    found = [twister_state(random.getstate())]
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        found.append(twister_state(numpy.random.get_state()))
    return [each for each in found if each is not None]


def was_left_behind(now: TwisterState, here: Sequence[TwisterState], read: TwisterState) -> bool:
    """True if a generator continued from one of its states in `here` instead of from the loaded
    state `read`.

    False for a generator that drew nothing, and if both states lie in one stream or too far apart.
    """
    if now in here or now == read or _leads_to(read, now):
        return False
    return any(_leads_to(start, now) for start in here)


def _leads_to(start: TwisterState, now: TwisterState) -> bool:
    """True if drawing numbers takes a generator from `start` to `now`."""
    for number, block in enumerate(_blocks(start)):
        if block == now.block:
            return number > 0 or now.taken >= start.taken
    return False


def _blocks(start: TwisterState) -> Iterator[tuple[int, ...]]:
    """The block of a state, and those that follow it."""
    generator = random.Random()
    generator.setstate((3, (*start.block, start.taken), None))
    for _ in range(BLOCKS):
        yield generator.getstate()[1][:LENGTH]
        generator.getrandbits(32 * LENGTH)


def _of_parts(words: Any, taken: Any) -> TwisterState | None:
    """The state with these numbers; None if they are no state of a Mersenne twister."""
    try:
        block = tuple(map(int, words))
        state = TwisterState(block, int(taken))
    except (TypeError, ValueError):
        return None
    fits = len(block) == LENGTH and 0 <= state.taken <= LENGTH
    return state if fits and all(0 <= word < 2**32 for word in block) else None
