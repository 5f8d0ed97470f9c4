"""How a live job follows the run: one mechanism of torch or Python a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tspec.runtime.live.mechanisms import (
    backward,
    clears,
    construction,
    events,
    fetches,
    forks,
    forward,
    joins,
    messages,
    updates,
)

if TYPE_CHECKING:
    from tspec.runtime.live.job import LiveJob

MECHANISMS = (
    construction.install,
    forward.install,
    backward.install,
    clears.install,
    updates.install,
    fetches.install,
    events.install,
    messages.install,
    forks.install,
    joins.install,
)


def install(job: LiveJob) -> None:
    """Start all mechanisms, in an order in which each finds what it needs."""
    for start in MECHANISMS:
        start(job)
