"""Checkpoints: what files held that were read, where an event compares with it what is saved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tspec.runtime.live.followed import FollowedJob
from tspec.runtime.live.watched import Listener, Role

READ = "torch.load"
READERS = ("lost_updates", "restarted", "goes_on_from")
"""The functions of fields that read what is followed here."""


class ReadListener(Listener):
    """Remembers the counts of what was read."""

    def __init__(self, job: FollowedJob) -> None:
        self._job = job

    def returned(
        self, token: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any
    ) -> None:
        """A file was read."""
        self._job.state.checkpoints.loaded(result, args[0] if args else kwargs.get("f"))


def install(job: FollowedJob) -> None:
    """Follow the reading of files, if an event compares with them."""
    if any(map(job.spec.computes, READERS)):
        job.functions.watch_path(Role("read", ReadListener(job), path=READ))
