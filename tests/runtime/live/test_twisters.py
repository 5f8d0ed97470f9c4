"""Places of the generators of Python and numpy in their streams."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tspec.runtime.live.checkpoints import twisters
from tspec.runtime.live.checkpoints.twisters import TwisterState, twister_state, was_left_behind


def along(seed: int, *draws: int) -> list[TwisterState]:
    """The states of a generator: seeded, and after each of the draws."""
    generator = random.Random(seed)
    found = [twister_state(generator.getstate())]
    for draw in draws:
        generator.getrandbits(32 * draw)
        found.append(twister_state(generator.getstate()))
    return [each for each in found if each is not None]


def test_what_is_a_state() -> None:
    numpy = np.random.RandomState(3)
    python = twister_state(random.Random(3).getstate())
    assert python is not None and python.taken == 624
    read: Any = [3, [*python.block, 624], None]
    assert twister_state(read) == python
    assert twister_state(numpy.get_state()) == twister_state(numpy.get_state(legacy=False))
    assert twister_state(numpy.get_state()) is not None
    others: tuple[Any, ...] = (
        (3, (1, 2), None),
        (3, 4, 5),
        ("MT19937", None, 1, 0, 0.0),
        ("MT19937", [-1] * 624, 1, 0, 0.0),
        ("MT19937", [1] * 624, 700, 0, 0.0),
        {"bit_generator": "PCG64", "state": {}},
        {"state": 1},
        "MT19937",
    )
    assert [twister_state(each) for each in others] == [None] * len(others)


def test_a_state_that_was_not_taken_over_is_told() -> None:
    began, drawn, more = along(1, 3, 5000)
    [read, restored] = along(2, 900)
    assert was_left_behind(drawn, [began], read)
    assert was_left_behind(more, [along(5)[0], began], read)
    assert not was_left_behind(restored, [began], read)
    assert not was_left_behind(read, [began], read)


def test_a_generator_that_draws_nothing_or_is_seeded_is_not() -> None:
    [began] = along(1)
    [read] = along(2)
    assert not was_left_behind(began, [began], read)
    assert not was_left_behind(along(3, 40)[-1], [began], read)


def test_two_places_of_one_stream() -> None:
    began, early, read, late = along(1, 10, 3000, 20)
    assert was_left_behind(early, [began], read)
    assert not was_left_behind(late, [began], read)
    assert not was_left_behind(late, [read], began)


def test_a_place_that_is_too_far_is_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    [began, far] = along(1, 20_000)
    [read] = along(2)
    assert was_left_behind(far, [began], read)
    monkeypatch.setattr(twisters, "BLOCKS", 10)
    assert not was_left_behind(far, [began], read)


def test_the_states_of_this_process() -> None:
    here = twisters.states_here()
    assert here == [twister_state(random.getstate()), twister_state(np.random.get_state())]
