"""Micro-batches of torch's pipeline schedules, which call them chunks: each has the number that the schedule gives it.

Its forward pass and its backward pass come apart: under GPipe all forward passes are made first, under 1F1B a stage
is some micro-batches ahead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tspec.runtime.live.entities.stages import STAGE
from tspec.runtime.live.followed import FollowedJob
from tspec.runtime.live.watched import Listener, Role

BACKWARD = "backward_one_chunk"
PASSES = {"forward_one_chunk": "fwd_chunk_id", BACKWARD: "bwd_chunk_id"}
"""Methods that make one pass of a stage, and the argument with the number, from 0 on."""


class ChunkListener(Listener):
    """Follows the passes of pipeline stages. Calls within a pass belong to its micro-batch."""

    def __init__(self, job: FollowedJob, argument: str) -> None:
        self._job = job
        self._argument = argument

    def before(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """A stage is about to pass a micro-batch on or back."""
        number = args[1] if len(args) > 1 else kwargs.get(self._argument)
        self._job.chunk = None if number is None else number + 1

    def ended(self, token: Any) -> None:
        """The stage has passed the micro-batch on or back."""
        self._job.chunk = None


class LossListener(Listener):
    """Learns the loss from which the last stage passes back: zero-bubble schedules call no `backward`."""

    def __init__(self, job: FollowedJob) -> None:
        self._job = job

    def before(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """A stage is about to pass a micro-batch back."""
        loss = args[2] if len(args) > 2 else kwargs.get("loss")
        if loss is not None:
            self._job.known.loss_is(loss)


def install(job: FollowedJob) -> None:
    """Follow the passes of stages."""
    for method, argument in PASSES.items():
        listener = ChunkListener(job, argument)
        job.functions.watch_path(Role("chunk", listener, path=f"{STAGE}.{method}"))
    job.functions.watch_path(Role("loss", LossListener(job), path=f"{STAGE}.{BACKWARD}"))
