"""Forks of the process: a job of its own in each, but for the workers of data loaders."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import FunctionType
from typing import TYPE_CHECKING, Any

from torch.utils.data._utils import worker

if TYPE_CHECKING:
    from tspec.runtime.live.job import Job

_PLACE = 10
"""Where `_worker_loop` takes the worker's number, if it comes by position."""


def install(job: Job) -> None:
    """Begin anew in forked children; say so to sinks that ask (`forked(worker)`)."""

    def in_child() -> None:
        if job.active:
            job.forked(None)

    os.register_at_fork(after_in_child=in_child)

    def into(original: FunctionType) -> Callable[..., Any]:
        def loop(*args: Any, **kwargs: Any) -> Any:
            number = kwargs.get("worker_id", args[_PLACE] if len(args) > _PLACE else 0)
            if job.active:
                job.forked(int(number))
            return original(*args, **kwargs)

        return loop

    job.functions.exchange(worker._worker_loop, into)
