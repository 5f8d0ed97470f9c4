"""A map in columns holds what a dict holds."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tspec.runtime.series.int_map import CHUNK, HIGH, LOW, IntMap

KEYS = st.integers(0, 8) | st.integers(LOW, HIGH) | st.sampled_from((LOW, HIGH))


@given(st.lists(st.tuples(KEYS, st.integers(0, 9))))
def test_a_map_holds_what_a_dict_holds(entries: list[tuple[int, int]]) -> None:
    found, expected = IntMap(), {}
    for key, value in entries:
        assert found.put(key, value) == expected.get(key)
        expected[key] = value
        assert len(found) == len(expected)
    assert list(found.items()) == sorted(expected.items())


def test_chunks_are_split_and_keep_their_entries() -> None:
    draw = Random(0)
    keys = [draw.randint(LOW, HIGH) for _ in range(5 * CHUNK)]
    found = IntMap()
    assert [found.put(key, place) for place, key in enumerate(keys)] == [None] * len(keys)
    assert [found.put(key, -place) for place, key in enumerate(keys)] == [*range(len(keys))]
    assert [key for key, _ in found.items()] == sorted(keys)
