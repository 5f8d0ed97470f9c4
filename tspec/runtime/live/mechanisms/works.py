"""Follows works: collectives that return before their output is there, and the calls that wait for
it.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import torch
import torch.distributed as dist

from tspec.runtime.live.followed import FollowedJob
from tspec.runtime.live.watched import Listener, Role

Arguments = tuple[Any, ...]
WORK = "torch._C._distributed_c10d.Work"
WAITS = (f"{WORK}.wait", "torch.distributed._functional_collectives.wait_tensor")
"""The calls after which the output may be read."""
COALESCING = "torch.distributed.distributed_c10d._coalescing_manager"
OTHERS = (f"{WORK}.is_completed", f"{WORK}.synchronize", f"{WORK}.get_future")
"""Other ways to learn of it: from then on it is not known when the output is read."""


class _WorkListener(Listener):
    def __init__(self, job: FollowedJob) -> None:
        self._job = job


class WaitedWorkListener(_WorkListener):
    """Ends the calls whose output was waited for."""

    def returned(self, token: Any, args: Arguments, kwargs: Mapping[str, Any], result: Any) -> None:
        """The output is there."""
        for each in reversed(self._job.state.pending.of(args[0])):
            self._job.arrived(each)


class CoalescedWorkListener(_WorkListener):
    """Follows `_CoalescingManager.append`: the collectives of its block are issued, and have this work."""

    def before(self, args: Arguments, kwargs: Mapping[str, Any]) -> None:
        """The collectives of the block are issued."""
        if self._job.state.pending.coalesces:
            self._job.state.pending.issued(args[1] if len(args) > 1 else kwargs.get("work"))


class CoalescingListener(_WorkListener):
    """Follows `_coalescing_manager`: where its block ends, the outputs of its collectives are there
    if it issues no work.
    """

    def returned(self, token: Any, args: Arguments, kwargs: Mapping[str, Any], result: Any) -> None:
        """The manager is made; its block is entered later."""
        result.gen = self._followed(result.gen)

    def _followed(self, block: Generator[Any, Any, None]) -> Generator[Any, Any, None]:
        """The block, with notice of its beginning and its end."""
        pending = self._job.state.pending
        self._job.quietly(pending.block_opens)
        complete = False
        try:
            yield from block
            complete = True
        finally:
            self._job.quietly(lambda: self._ended(complete))

    def _ended(self, complete: bool) -> None:
        if self._job.state.pending.coalesces:
            for each in self._job.state.pending.block_closes():
                self._job.arrived(each, waited_for=complete)


class OtherListener(_WorkListener):
    """Ends the calls of a work that is asked for by other means than `wait`: the state of their
    output is unknown.
    """

    def before(self, args: Arguments, kwargs: Mapping[str, Any]) -> None:
        """Somebody asks for it."""
        for each in reversed(self._job.state.pending.of(args[0])):
            self._job.arrived(each, waited_for=False)


class DeviceListener(_WorkListener):
    """Ends all calls whose output is not there: the job waits for a whole device."""

    def before(self, args: Arguments, kwargs: Mapping[str, Any]) -> None:
        """The job is about to wait for a device."""
        for each in self._job.state.pending:
            self._job.arrived(each, waited_for=False)


def install(job: FollowedJob) -> None:
    """Follow works, if an event reads the result of a collective."""
    if not dist.is_available() or not any(
        path.startswith("torch.distributed.") and field.reads_result
        for event in job.spec.events
        for path in event.callables
        for field in event.fields
    ):
        return

    def awaits(handle: Any) -> bool:
        return bool(job.state.pending.of(handle))

    coalesced = Role("coalesced", CoalescedWorkListener(job))
    job.functions.watch_method(dist.distributed_c10d._CoalescingManager, "append", coalesced)
    block = Role("coalescing", CoalescingListener(job), path=COALESCING)
    job.functions.watch_path(block)
    for path in WAITS:
        job.functions.watch_path(Role("wait", WaitedWorkListener(job), path=path, guard=awaits))
    for path in OTHERS:
        job.functions.watch_path(Role("other wait", OtherListener(job), path=path, guard=awaits))
    device = Role("device wait", DeviceListener(job), path="torch.cuda.synchronize")
    if torch.cuda.is_available():
        job.functions.watch_path(device)
