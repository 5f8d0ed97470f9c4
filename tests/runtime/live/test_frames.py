"""Frames of calls lie in memory that is mapped once."""

from __future__ import annotations

import resource

from tspec.runtime.live import LiveJob, WatchSpec
from tspec.runtime.live.instrument.frames import with_room
from tspec.runtime.live.watched import Listener, Role

CALLS = 200


def leaf() -> None:
    """A call that may begin a new piece of memory for frames: its frame is larger than those that lie around it."""


leaf.__code__ = leaf.__code__.replace(co_stacksize=100)


def page_faults(depth: int) -> int:
    """The page faults of some calls that are this many calls deeper."""
    if depth:
        return page_faults(depth - 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(CALLS):
        leaf()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def most_faults() -> int:
    """The most page faults at any depth: each new piece of memory has at least one."""
    return max(page_faults(depth) for depth in range(300))


@with_room
def within() -> int:
    return most_faults()


def test_no_call_within_maps_memory_for_its_frame() -> None:
    assert within() < CALLS


def schedule() -> int:
    """Like a schedule of Megatron, a call of which lasts for most of a step."""
    return most_faults()


def test_calls_within_a_watched_call_that_lasts_find_room() -> None:
    with LiveJob(WatchSpec(()), ()) as job:
        path = f"{__name__}.schedule"
        job.functions.watch_path(Role("schedule", Listener(), path=path, room=True))
        assert schedule() < CALLS
