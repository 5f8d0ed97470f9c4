"""Ranks with uneven batches: within `torch.distributed.algorithms.Join`, finished ranks wait for
the others.


The collectives by which ranks learn who has joined, and who was the last, are not watched: each
rank makes them in a step of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.nn.parallel import DistributedDataParallel

from tspec.runtime.live.activities import Joined, Shadowed
from tspec.runtime.live.followed import FollowedJob
from tspec.runtime.live.watched import Listener, Role


class JoinListener(Listener):
    """Follows `Join.__exit__`, in which a rank without batches answers the collectives of the
    others.
    """

    def __init__(self, job: FollowedJob) -> None:
        self._job = job
        self._shadowed: dict[int, int] = {}
        """Hook -> the number of other ranks' passes in which it took part."""
        self._passes = 0

    def before(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """This rank has no more batches, unless an error ends the loop."""
        self._job.joins = False
        if args[0]._enable and not any(args[1:2]):
            self._shadowed.clear()
            self._passes = 0
            self._job.do(Joined())

    def shadowed(self, hook: Any) -> None:
        """Another rank makes a pass: the collectives that follow belong to its step."""
        taken = self._shadowed[id(hook)] = self._shadowed.get(id(hook), 0) + 1
        if taken > self._passes:
            self._passes = taken
            self._job.do(Shadowed())
        self._job.waits()


class JoinEntryListener(Listener):
    """Follows `Join.__enter__`."""

    def __init__(self, job: FollowedJob) -> None:
        self._job = job

    def before(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """A loop begins that this rank may leave before others."""
        self._job.joins = args[0]._enable


class JoinHookListener(Listener):
    """Follows the hooks through which a joined rank takes part in collectives."""

    def __init__(self, joins: JoinListener) -> None:
        self._joins = joins

    def before(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """Another rank makes one pass."""
        self._joins.shadowed(args[0])


def install(job: FollowedJob) -> None:
    """Follow ranks that join."""
    if not torch.distributed.is_available():
        return
    from torch.distributed.algorithms.join import Join, JoinHook

    joins = JoinListener(job)
    job.functions.watch_method(Join, "__enter__", Role("begin to join", JoinEntryListener(job)))
    job.functions.watch_method(Join, "__exit__", Role("join", joins))
    job.functions.watch_method(JoinHook, "main_hook", Role("shadow", JoinHookListener(joins)))
    asks = Role("who has joined", hides=True)
    job.functions.watch_function(Join.notify_join_context, asks)
    job.functions.watch_function(Join._get_num_nonjoined_procs, asks, method=True)
    for name in ("_check_global_requires_backward_grad_sync", "_sync_final_model"):
        job.functions.watch_method(DistributedDataParallel, name, asks)
