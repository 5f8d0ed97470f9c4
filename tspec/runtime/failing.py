"""The last decisions and report of a rank whose job fails within a step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from tspec.runtime.actions import ACTS
from tspec.runtime.edges import StateSource
from tspec.runtime.ranks.allgather import AllGather, Round
from tspec.runtime.ranks.coordinator import Coordinator
from tspec.runtime.tracking.tracker import WindowTracker

BRIEF = 5.0
"""Seconds that a failing rank waits for findings of other machines."""
LATE = 1.0
"""Seconds that a failing rank waits for earlier packets of the other ranks."""


def report_failure(
    tracker: WindowTracker, coordinator: Coordinator, source: StateSource | None, rank: int
) -> None:
    """Decide and report what is known as the job ends within a step.

    Another rank may have been stopped, and this one not know it yet. `source`: None if no span has
    opened.
    """
    with suppress(Exception):  # a device that failed gives no values
        tracker.postponed.decide(before=0)
    if source is not None and coordinator.allgather.connected:
        with suppress(*ACTS):
            coordinator.take_rounds(_late_rounds(coordinator.allgather), source)
    at = tracker.at
    actions = coordinator.would_be({result.rule for result in coordinator.found}, at)
    due = {number for number, action in actions.items() if action}
    coordinator.report(due, at[0], rank, source)


def _late_rounds(allgather: AllGather) -> Iterator[Round]:
    """The rounds that other ranks have sent, or send within a moment."""
    while (found := allgather.collect(LATE if allgather.busy else 0.0)) is not None:
        yield found
