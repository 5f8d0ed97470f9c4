"""Collectives on parameters: updates that another rank made, and averages over ranks that the script takes by hand."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
import torch.distributed as dist

from tspec.runtime.live.activities import LivingOptimizers, Update
from tspec.runtime.live.entities.optimizers import held_by
from tspec.runtime.live.followed import FollowedJob
from tspec.runtime.live.placed import ORDINARY, is_flattened
from tspec.runtime.live.watched import Listener, Role

MODULE = "torch.distributed.distributed_c10d"
RECEIVES = ("broadcast", "recv")
"""Calls that write data of another rank into their first argument."""
AVERAGES = (*RECEIVES, "all_reduce", "reduce", "all_gather", "all_gather_into_tensor")
"""Calls that make parameters equal across ranks."""
PASSES = 8
"""The number of backward passes of a rank that are checked for updates of an optimizer that the
rank does not call.
"""
LARGEST, ELEMENTS = 4, 64
"""The number of its parameters, and of elements of each, that are compared to detect an update."""

_Samples = dict[int, tuple[list[torch.Tensor], torch.Tensor]]
"""Optimizer number -> some of its parameters, and sampled elements of them."""


class ReceivedListener(Listener):
    """Follows parameters that arrive from another rank after a backward pass.

    A rank whose optimizer is never called takes part in the steps of the sending rank: receiving
    the parameters is its update.
    """

    def __init__(self, job: FollowedJob) -> None:
        self._job = job
        self._received: set[int] = set()
        """Numbers of the optimizers whose parameters another rank updates."""

    def returned(
        self, token: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any
    ) -> None:
        """A tensor was received, or sent."""
        place = self._job.place
        if not place.backward_since_update or place.updating:
            return
        tensor = args[0] if args else kwargs.get("tensor")
        if not isinstance(tensor, torch.Tensor) or self._sends(args, kwargs):
            return
        optimizers = self._job.state.optimizers
        for optimizer in list(optimizers.things().values()):
            number = optimizers.numbered.number(optimizer)
            own = number in place.ever and number not in self._received
            if not own and _writes(tensor, optimizer):
                self._received.add(number)
                _updated(self._job, number)

    def _sends(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
        """True if this rank is the source."""
        source = kwargs.get("src", args[1] if len(args) > 1 else None)
        if kwargs.get("group_src") is not None:
            group = kwargs.get("group") or dist.group.WORLD
            source = None if group is None else dist.get_global_rank(group, kwargs["group_src"])
        return bool(source == self._job.rank)


class SentUpdates:
    """Finds updates that reach this rank in parts, or as objects: the parameters of an optimizer
    that it never calls change after the end of the backward pass.

    The next activity may open a step, so the comparison must be done before it, and waits for the
    device. It is made in the first backward passes of such an optimizer, and in all passes of one
    that was found to be updated.
    """

    def __init__(self, job: FollowedJob) -> None:
        self._job = job
        self._sent: set[int] = set()
        """Numbers of the optimizers whose parameters were found to differ."""
        self._looked_at: Counter[int] = Counter()
        """Optimizer number -> the passes in which its parameters were compared."""

    def pass_ended(self) -> None:
        """A backward pass is over. Its gradients are used, or sent to other ranks, next."""
        if not (dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1):
            return
        optimizers, ever = self._job.state.optimizers, self._job.place.ever
        found: _Samples = {}
        for optimizer in list(optimizers.things().values()):
            number = optimizers.numbered.number(optimizer)
            if number not in self._sent:
                if number in ever or self._looked_at[number] >= PASSES:
                    continue
                self._looked_at[number] += 1
            held = _largest(optimizer)
            if held:
                found[number] = (held, _some_elements(held))
        if found:
            self._job.do_before_next(partial(self._look, found))

    def _look(self, found: _Samples) -> None:
        """Training continues. Without a change, compare again at the next activity, until some
        optimizer updates.
        """
        place = self._job.place
        if not place.backward_since_update or place.updating:
            return
        moved = [
            number
            for number, (held, before) in found.items()
            if not torch.equal(_some_elements(held), before)
        ]
        if not moved:
            self._job.do_before_next(partial(self._look, found))
        for number in moved:
            self._sent.add(number)
            _updated(self._job, number)


def _largest(optimizer: Any) -> list[torch.Tensor]:
    """The largest parameters of an optimizer that are whole."""
    held = [
        each
        for each in held_by(optimizer)
        if type(each) in ORDINARY and not is_flattened(each) and each.is_floating_point()
    ]
    return sorted(held, key=torch.numel, reverse=True)[:LARGEST]


def _some_elements(tensors: Sequence[torch.Tensor]) -> torch.Tensor:
    """Some elements of each tensor, on the device of the first."""
    flat = [each.detach().reshape(-1) for each in tensors]
    some = [each[:: -(-each.numel() // ELEMENTS) or 1] for each in flat]
    return torch.cat([each.to(some[0].device, some[0].dtype) for each in some])


def _updated(job: FollowedJob, optimizer: int) -> None:
    """Another rank has updated the parameters of an optimizer, which is this rank's update."""
    job.do(LivingOptimizers(job.state.living_optimizers()))
    job.do(Update(optimizer))
    job.do(Update(optimizer, ended=True))


class AveragedListener(Listener):
    """Follows parameters that the script hands to collectives between updates: the script changes
    them repeatedly.

    The script may instead hand over one tensor computed from each parameter, such as its change
    since the last average.
    """

    def __init__(self, job: FollowedJob) -> None:
        self._job = job
        self._step = 0
        self._shapes: Counter[torch.Size] = Counter()
        """The shapes of tensors sent in this step after its update."""

    def returned(
        self, token: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any
    ) -> None:
        """Ranks have put tensors together."""
        place = self._job.place
        if not place.ever_updated or place.updating or self._is_in_a_pass():
            return
        given = [each for each in (*args[:2], *kwargs.values()) if isinstance(each, torch.Tensor)]
        if not given:
            return
        self._count(given)
        for optimizer in list(self._job.state.optimizers.things().values()):
            held = held_by(optimizer)
            if any(_writes(tensor, optimizer) for tensor in given) or self._is_one_for_each(held):
                self._job.state.updates.projected.add(held)

    def _count(self, given: Sequence[torch.Tensor]) -> None:
        """Note the shapes of the tensors sent. Before an update these are gradients."""
        place = self._job.place
        if place.step != self._step or place.backward_since_update:
            self._step = place.step
            self._shapes.clear()
        if not place.backward_since_update:
            self._shapes.update([given[0].shape])

    def _is_one_for_each(self, held: Sequence[torch.Tensor]) -> bool:
        """True if, for each shape, at least as many tensors were sent as the optimizer holds
        parameters.
        """
        if len(held) > self._shapes.total():
            return False
        return len(held) > 1 and Counter(each.shape for each in held) <= self._shapes

    def _is_in_a_pass(self) -> bool:
        """Within a forward or backward pass, where collectives are many, a script averages nothing."""
        return self._job.threads.modules > 0 or torch._C._current_graph_task_id() != -1


def _writes(tensor: torch.Tensor, optimizer: Any) -> bool:
    """True if a tensor shares the memory of an optimizer's parameter, or is a flat copy: it has as
    many elements as all of them.

    Parameters that FSDP has flattened are left out: they are gathered for use or for saving.
    """
    if type(tensor) not in ORDINARY or not tensor.numel():
        return False
    held = [
        each for each in held_by(optimizer) if type(each) in ORDINARY and not is_flattened(each)
    ]
    at = tensor.data_ptr()
    alike = any(each.data_ptr() == at and each.dtype == tensor.dtype for each in held)
    return alike or (len(held) > 1 and sum(each.numel() for each in held) == tensor.numel())


def install(job: FollowedJob) -> None:
    """Follow collectives on parameters, if torch was built to have any."""
    if not dist.is_available():
        return
    received = ReceivedListener(job)
    for name in RECEIVES:
        job.functions.watch_path(Role("received", received, path=f"{MODULE}.{name}"))
    parameter = job.spec.entity("parameter")
    if parameter is not None and any(field.name == "projected" for field in parameter.fields):
        averaged = AveragedListener(job)
        for name in AVERAGES:
            job.functions.watch_path(Role("averaged", averaged, path=f"{MODULE}.{name}"))
