"""Follows steps and micro-batches of a Megatron job by its schedules and optimizers.

A step begins when gradients are cleared or a schedule begins to train. It ends with the optimizer's
`step`, even if that skipped the update. A micro-batch has the number that the schedule gives it, in
its forward pass and in its backward pass, which are apart under 1F1B.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from tspec.runtime.live.activities import Microbatch, Scheduled, Stepped
from tspec.runtime.live.watched import Listener, ReturnListener, Role
from tspec.targets.megatron.configuration import Overflow, know, know_batch

if TYPE_CHECKING:
    from tspec.runtime.live.followed import FollowedJob
    from tspec.targets.megatron.shards import ShardedFields

SCHEDULES = "megatron.core.pipeline_parallel.schedules"
LOOPS = (
    f"{SCHEDULES}.forward_backward_no_pipelining",
    f"{SCHEDULES}.forward_backward_pipelining_without_interleaving",
    f"{SCHEDULES}.forward_backward_pipelining_with_interleaving",
)
CLEARS = (
    "megatron.core.optimizer.optimizer.MegatronOptimizer.zero_grad",
    "megatron.core.distributed.distributed_data_parallel.DistributedDataParallel.zero_grad_buffer",
)
STEP = "megatron.core.optimizer.optimizer.MegatronOptimizer.step"


class ClearListener(Listener):
    """Gradients are cleared for the step that comes, by an optimizer or by a model."""

    def __init__(self, job: FollowedJob, pieces: ShardedFields) -> None:
        self._job = job
        self._pieces = pieces

    def before(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """The gradients are about to be cleared."""
        self._pieces.learn(args[0])
        self._job.do(Scheduled())


class MicrobatchCounter:
    """Counts the micro-batches of one rank within a step."""

    def __init__(self, job: FollowedJob) -> None:
        self._job = job
        self._training = False
        self._passed: dict[int, int] = {}
        """Chunk -> the number of its forward passes in this step."""
        self._pending: dict[int, int] = {}
        """Output of a forward pass -> its micro-batch, until its backward pass."""

    def begins(self, training: bool) -> None:
        """A schedule begins to train or to evaluate."""
        self._training = training
        self._passed.clear()
        self._pending.clear()
        if training:
            self._job.do(Scheduled())

    def ended(self) -> None:
        """The schedule returned, or raised."""
        self._training = False
        self._pending.clear()

    def forward(self, chunk: int, given: int | None) -> int | None:
        """A forward pass begins; the number of its micro-batch, from 1. None in an evaluation."""
        if not self._training:
            return None
        passed = self._passed[chunk] = self._passed.get(chunk, 0) + 1
        number = passed if given is None else given + 1
        self._job.do(Microbatch(number))
        return number

    def made(self, output: Any, number: int | None) -> None:
        """A forward pass has produced the tensor from which its backward pass will begin.

        One number is the loss. It is read here, since `deallocate_pipeline_outputs` frees it before
        the backward pass, which does not go through `torch.autograd.backward` then.
        """
        if number is None:
            return
        made = _single(output)
        self._pending[id(made)] = number
        if isinstance(made, torch.Tensor) and made.numel() == 1:
            self._job.known.loss_is(made)

    def backward(self, output: Any) -> None:
        """A backward pass begins."""
        number = self._pending.pop(id(_single(output)), None)
        if number is not None:
            self._job.do(Microbatch(number))


def _single(given: Any) -> Any:
    """The first element of a list, or the value itself: Megatron passes chunks and outputs in both
    forms.
    """
    return given[0] if isinstance(given, list) and given else given


class ScheduleListener(Listener):
    """Follows the schedules."""

    def __init__(self, job: FollowedJob, schedule: MicrobatchCounter) -> None:
        self._job = job
        self._schedule = schedule

    def before(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """A schedule begins. All of its arguments are named."""
        know(self._job, getattr(_single(kwargs.get("model")), "config", None))
        training = not kwargs.get("forward_only", False)
        if training:
            know_batch(self._job, kwargs)
        self._schedule.begins(training)

    def ended(self, token: Any) -> None:
        """The schedule has ended."""
        self._schedule.ended()


class ForwardStepListener(Listener):
    """Follows `forward_step`."""

    def __init__(self, schedule: MicrobatchCounter) -> None:
        self._schedule = schedule

    def before(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> int | None:
        """One micro-batch goes through one chunk. Its model is the third argument."""
        model = args[2] if len(args) > 2 else kwargs.get("model")
        given = kwargs.get("current_microbatch")
        return self._schedule.forward(id(model), given if isinstance(given, int) else None)

    def returned(
        self, token: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any
    ) -> None:
        """The model has its output: the first of the returned values."""
        self._schedule.made(result[0] if isinstance(result, tuple) else result, token)


class BackwardStepListener(Listener):
    """Follows `backward_step`."""

    def __init__(self, schedule: MicrobatchCounter) -> None:
        self._schedule = schedule

    def before(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """The second argument is the output that the backward pass begins from."""
        self._schedule.backward(args[1] if len(args) > 1 else kwargs.get("output_tensor"))


def install(job: FollowedJob, pieces: ShardedFields) -> None:
    """Follow a job's schedules and optimizers; `pieces` learns of the optimizers."""
    schedule = MicrobatchCounter(job)
    for path in LOOPS:
        listener = ScheduleListener(job, schedule)
        job.functions.watch_path(Role("schedule", listener, path=path, room=True))
    forward, backward = ForwardStepListener(schedule), BackwardStepListener(schedule)
    job.functions.watch_path(Role("forward step", forward, path=f"{SCHEDULES}.forward_step"))
    job.functions.watch_path(Role("backward step", backward, path=f"{SCHEDULES}.backward_step"))
    for path in CLEARS:
        job.functions.watch_path(Role("clears for a step", ClearListener(job, pieces), path=path))
    job.functions.watch_path(Role("overflow", Overflow(job), path=STEP))
    # `step` also returns if it skipped the update because a gradient is not finite.
    updated = ReturnListener(lambda args, kwargs: job.do(Stepped()))
    job.functions.watch_path(Role("steps", updated, path=STEP))
