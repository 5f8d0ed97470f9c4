"""Gradients are cleared, by an optimizer or by a module."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from tspec.runtime.live.activities import Clear, LivingOptimizers
from tspec.runtime.live.entities.optimizers import clears_groups, held_by, holds_groups
from tspec.runtime.live.followed import FollowedJob
from tspec.runtime.live.module_tree import parameters_of
from tspec.runtime.live.watched import Listener, Role

CLEAR = "torch.optim.Optimizer.zero_grad"


class ZeroGradListener(Listener):
    """Follows `zero_grad` of optimizers and modules."""

    def __init__(self, job: FollowedJob) -> None:
        self._job = job

    def before(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """The gradients of a module or an optimizer are about to be cleared."""
        optimizers = self._job.state.optimizers
        if isinstance(args[0], nn.Module):
            parameters = list(parameters_of(args[0]))
            cleared = optimizers.holders_of(parameters)
        else:
            parameters = held_by(args[0])
            cleared = self._cleared(args[0], parameters)
        self._job.state.updates.reused.cleared(parameters)
        self._job.state.updates.dropped.cleared(parameters)
        self._job.state.updates.foreign.cleared(parameters)
        self._job.state.updates.with_gradient.cleared(parameters)
        self._job.do(LivingOptimizers(self._job.state.living_optimizers()))
        self._job.do(Clear(cleared))

    def _cleared(self, optimizer: Any, parameters: list[torch.Tensor]) -> frozenset[int]:
        """The number of the optimizer; for a wrapper, the numbers of the optimizers that hold its
        parameters.
        """
        optimizers = self._job.state.optimizers
        if isinstance(optimizer, torch.optim.Optimizer) and not holds_groups(optimizer):
            return optimizers.holders_of(parameters)
        return frozenset({optimizers.numbered.number(optimizer)})


def install(job: FollowedJob) -> None:
    """Follow `zero_grad`, also of the optimizers that override it."""
    role = Role("clear", ZeroGradListener(job), path=CLEAR)
    job.functions.watch_method(
        torch.optim.Optimizer, "zero_grad", replace(role, guard=clears_groups)
    )
    job.functions.watch_method(nn.Module, "zero_grad", role)
