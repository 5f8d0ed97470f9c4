"""The mechanisms by which a live job follows the run: one file for each mechanism of torch or
Python.
"""

from __future__ import annotations

from tspec.runtime.live.followed import FollowedJob
from tspec.runtime.live.mechanisms import (
    averages,
    backward,
    captures,
    checkpoints,
    chunks,
    clears,
    construction,
    empty_states,
    events,
    fetches,
    forks,
    forward,
    joins,
    messages,
    received,
    sent,
    shape_inference,
    tokens,
    updates,
    works,
)

MECHANISMS = (
    construction.install,
    forward.install,
    backward.install,
    clears.install,
    updates.install,
    fetches.install,
    events.install,
    messages.install,
    works.install,
    forks.install,
    joins.install,
    shape_inference.install,
    empty_states.install,
    checkpoints.install,
    chunks.install,
    tokens.install,
    averages.install,
    received.install,
    sent.install,
    captures.install,
)


def install(job: FollowedJob) -> None:
    """Start all mechanisms, dependencies first."""
    for start in MECHANISMS:
        start(job)
