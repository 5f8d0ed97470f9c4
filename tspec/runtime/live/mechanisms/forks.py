"""Workers of data loaders: no jobs of their own, as other forks of the process are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch.utils.data._utils import worker

from tspec.runtime.live.followed import FollowedJob

_PLACE = 10
"""The position of the worker's number among the arguments of `_worker_loop`."""


def install(job: FollowedJob) -> None:
    """Begin anew in a worker; say so to sinks that ask (`forked(worker)`)."""

    def into(original: Callable[..., Any]) -> Callable[..., Any]:
        def loop(*args: Any, **kwargs: Any) -> Any:
            number = kwargs.get("worker_id", args[_PLACE] if len(args) > _PLACE else 0)
            if job.active:
                job.forked(int(number))
            return original(*args, **kwargs)

        return loop

    job.functions.exchange(worker._worker_loop, into)
