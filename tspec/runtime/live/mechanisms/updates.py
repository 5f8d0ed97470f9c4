"""Updates: `Optimizer.step`, and `step` of the user's own classes that hold parameters."""

from __future__ import annotations

from collections.abc import Mapping
from types import FunctionType
from typing import Any

import torch
from torch import nn

from tspec.runtime.live.activities import LivingOptimizers, OptimizerBuilt, Update
from tspec.runtime.live.entities.kind import asked
from tspec.runtime.live.entities.optimizers import (
    groups_of,
    held_by,
    held_tensors,
    holds_groups,
    holds_optimizers,
)
from tspec.runtime.live.followed import FollowedJob
from tspec.runtime.live.mechanisms.clears import CLEAR, ZeroGradListener
from tspec.runtime.live.watched import Listener, ReturnListener, Role

STEP = "torch.optim.Optimizer.step"


class UpdateListener(Listener):
    """Follows updates of the parameters."""

    def __init__(self, job: FollowedJob) -> None:
        self._job = job
        parameter = job.spec.entity("parameter")
        read = set() if parameter is None else {field.name for field in parameter.fields}
        self._projections = "projected" in read
        self._interpolations = "interpolated" in read
        self._reuses = job.spec.computes("reused")
        self._scales = job.spec.computes("scaled", "own_gradients", "used_gradients")
        self._drops = job.spec.computes("dropped")
        self._doubles = job.spec.computes("doubled")
        self._mixes = job.spec.computes("foreign")
        self._beginnings = job.spec.computes("unrelated_averages") or "averaged" in read
        self._copies = not read.isdisjoint({"copies", "averaged"})
        self._gradients = not read.isdisjoint({"had_gradient", "updates_without_gradient"})
        module = job.spec.entity("module")
        of_modules = set() if module is None else {field.name for field in module.fields}
        self._beside = (
            not read.isdisjoint({"updated_elsewhere", "copied"}) or "copied" in of_modules
        )

    def before(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[int, Any]:
        """An optimizer is about to change its parameters. Returns its number and the optimizer."""
        held = held_by(args[0])
        if self._job.state.pending:
            self._job.state.pending.read(each.grad for each in held if each.grad is not None)
        optimizers = self._job.state.optimizers
        number = optimizers.numbered.number(args[0])
        optimizers.update_begins(args[0])
        updates = self._job.state.updates
        if self._scales:
            updates.scaled.before_update(number)
        if self._drops:
            updates.dropped.before_update(number)
        if self._mixes:
            updates.foreign.before_update(number)
        if self._doubles and isinstance(args[0], torch.optim.Optimizer):
            updates.doubled.before_update(number, held)
        if self._gradients:
            updates.with_gradient.before_update(number, held)
        if self._projections:
            updates.projected.before_update(number, held)
        if self._interpolations:
            updates.interpolated.before_update(number, held)
        if self._copies:
            updates.find_uncalled()
        if self._beside:
            updates.compare_unheld(number, self._job.state.copies_of)
        if self._beginnings:
            updates.compare_beginnings(args[0], self._job.state.copies_anywhere)
        if not self._job.place.updating:
            optimizers.sent.update_begins()
        self._job.do(LivingOptimizers(self._job.state.living_optimizers()))
        self._job.do(Update(number))
        self._job.taken_up()
        return number, args[0]

    def ended(self, token: Any) -> None:
        """The parameters are changed."""
        number, optimizer = token
        held, updates = held_by(optimizer), self._job.state.updates
        if self._gradients:
            updates.with_gradient.after_update(number, held)
        if self._projections:
            updates.projected.after_update(number, held)
        if self._interpolations:
            updates.interpolated.after_update(number)
        if self._reuses:
            updates.reused.after_update(number, held)
        if self._drops:
            updates.dropped.after_update(number)
        if self._doubles:
            updates.doubled.after_update(number)
        self._job.do(Update(number, ended=True))


class CustomOptimizers:
    """Classes of the user's with a method `step`, whose instances hold tensors that are to be trained."""

    def __init__(self, job: FollowedJob) -> None:
        self._job = job
        self._steps = UpdateListener(job)
        self._clears = ZeroGradListener(job)

    def look_at(self, cls: type) -> None:
        """If a class could be an optimizer, watch its methods."""
        if issubclass(cls, (torch.optim.Optimizer, nn.Module)) or not _users(cls):
            return
        for name, path, key, listener in (
            ("step", STEP, "update", self._steps),
            ("zero_grad", CLEAR, "clear", self._clears),
        ):
            users = [vars(base) for base in cls.__mro__ if _users(base)]
            function = next((held[name] for held in users if name in held), None)
            if not isinstance(function, FunctionType) or not any("step" in held for held in users):
                continue
            functions = self._job.functions
            functions.watch_function(
                function, Role(key, listener, path=path, guard=is_own_optimizer), method=True
            )
            for event in self._job.spec.events:
                if path in event.callables:
                    role = Role(event.name, event=event, path=path, guard=is_own_optimizer)
                    functions.watch_function(function, role, method=True)


def is_own_optimizer(thing: Any) -> bool:
    """The object itself holds tensors that are to be trained, is no module, and holds no optimizer of
    torch, to which it would leave the updates.
    """
    if issubclass(type(thing), (nn.Module, torch.Tensor, torch.optim.Optimizer)):
        return False
    values = asked(thing, "__dict__")
    if not isinstance(values, dict):
        return False
    holds = any(True for value in values.values() for _ in held_tensors(value))
    return holds and not any(map(holds_optimizers, values.values())) and bool(groups_of(thing))


def _users(cls: type) -> bool:
    """No class of torch or Python itself."""
    top = cls.__module__.split(".")[0]
    return top not in ("torch", "builtins", "tspec", "typing", "collections", "numpy", "unittest")


def install(job: FollowedJob) -> None:
    """Follow updates."""
    role = Role("update", UpdateListener(job), path=STEP, guard=holds_groups)
    job.functions.watch_method(torch.optim.Optimizer, "step", role)

    # A first step is then known not to be made by hand.
    def is_built(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        job.do(OptimizerBuilt())
        job.do(LivingOptimizers(job.state.living_optimizers()))

    built = Role("built", ReturnListener(is_built), path="torch.optim.Optimizer.__init__")
    job.functions.watch_function(torch.optim.Optimizer.__init__, built)
    own = CustomOptimizers(job)
    job.functions.watch_classes(own.look_at)
    for cls in list(type.__subclasses__(object)):
        if "step" in vars(cls):
            own.look_at(cls)
