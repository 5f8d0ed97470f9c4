"""Follows CUDA graphs: calls that a graph captures run again without Python, so no event sees them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tspec.runtime.live.followed import FollowedJob
from tspec.runtime.live.watched import Listener, Role, has_cuda

REPLAY = "torch.cuda.CUDAGraph.replay"


class ReplayListener(Listener):
    """Says once that the run replays a graph."""

    def __init__(self, job: FollowedJob) -> None:
        self._job = job

    def before(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """A graph is about to be replayed."""
        self._job.say("a CUDA graph is replayed: calls and tensors inside of it are not seen")


def install(job: FollowedJob) -> None:
    """Follow replays."""
    if has_cuda():
        job.functions.watch_path(Role("replay", ReplayListener(job), path=REPLAY))
