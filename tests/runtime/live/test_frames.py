"""Frames of calls lie in memory that is mapped once."""

from __future__ import annotations

import resource

from tspec.runtime.live.instrument.frames import with_room

CALLS = 200


def leaf() -> None:
    """A call that may begin a new piece of memory for frames."""


def page_faults(depth: int) -> int:
    """The page faults of some calls that are this many calls deeper."""
    if depth:
        return page_faults(depth - 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(CALLS):
        leaf()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


@with_room
def most_faults() -> int:
    """The most page faults at any depth: each new piece of memory has at least one."""
    return max(page_faults(depth) for depth in range(300))


def test_no_call_within_maps_memory_for_its_frame() -> None:
    assert most_faults() < CALLS
