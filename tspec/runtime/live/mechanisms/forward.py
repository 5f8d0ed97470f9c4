"""Follows outermost forward passes: they show the models, open steps, and separate training from
evaluation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from tspec.runtime.live.activities import Calibrating, Forward
from tspec.runtime.live.convert import tensors_in
from tspec.runtime.live.followed import FollowedJob
from tspec.runtime.live.module_tree import has_parameters, inner, trains, unwrapped
from tspec.runtime.live.watched import Listener, Role

MODULE_CALL = "torch.nn.Module.__call__"


class ModuleCallListener(Listener):
    """Follows `Module.__call__`."""

    def __init__(self, job: FollowedJob) -> None:
        self._job = job
        self._counts_evaluations = job.spec.computes("held_out_evaluations")
        self._finds_leaks = job.spec.computes("leaked_targets")
        self._finds_noise = job.spec.computes("lacks_noise")
        self._finds_mixtures = job.spec.computes("mixes_labels_otherwise")
        self._finds_masks = job.spec.computes("masked_labels")

    def says_something(self, module: nn.Module) -> bool:
        """True if a call is outermost, or the first call of its module. A step has a hundred other
        calls.
        """
        return not self._job.threads.modules or module not in self._job.state.models.called

    def before(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """A module is called; the outermost one is a root, and one that no model holds."""
        threads = self._job.threads
        module = args[0]
        models = self._job.state.models
        threads.modules += 1
        if threads.modules == 1:
            models.called_from_outside(module)
            if self._job.state.pending:
                self._job.state.pending.read(tensors_in((args[1:], kwargs)))
            if self._job.calibrating:
                self._job.do(Calibrating())
            elif has_parameters(module):
                training = trains(unwrapped(module))
                self._job.do(Forward(torch.is_grad_enabled(), training, self._job.chunk))
                if self._counts_evaluations:
                    self._count_evaluation(module, (*args[1:], *kwargs.values()))
                if self._finds_masks:
                    self._job.state.tokens.masked(kwargs)
                if self._finds_leaks:
                    self._job.state.leaks.gives((*args[1:], *kwargs.values()))
                if self._finds_mixtures:
                    self._job.state.mixed.gives((*args[1:], *kwargs.values()))
                if self._finds_noise:
                    self._job.state.noised.gives((*args[1:], *kwargs.values()))
            if self._job.staggered:
                self._job.taken_up(tensors_in((args[1:], kwargs)))
        else:
            models.called_from_within(module)
        models.called.add(unwrapped(module))
        if _is_compiled(module):
            name = type(unwrapped(module)).__name__
            self._job.say(f"{name} is compiled: calls and tensors inside of it are not seen")

    def _count_evaluation(self, module: nn.Module, given: Sequence[object]) -> None:
        """Count a pass without a graph: on a batch of a loader, once it is known which are trained on,
        and on samples that were evaluated before.
        """
        state = self._job.state
        state.repeated.gives(module, given, state.optimizers.made())
        latest = state.batches.latest
        fed = state.loaders.trained_on
        if fed and latest is not None and not torch.is_grad_enabled():
            batch, loader = latest
            held_out = state.loaders.number(loader) not in fed
            state.evaluations.answers(module, batch, held_out, state.optimizers.made())

    def ended(self, token: Any) -> None:
        """The module returned or raised."""
        self._job.threads.modules -= 1
        if self._finds_noise and not self._job.threads.modules:
            self._job.state.noised.returns()


def counts_as_forward(module: Any) -> bool:
    """Wrappers are no modules of their own, but a compiled model's call is all that is seen of the model's."""
    return inner(module) is None or _is_compiled(module)


def _is_compiled(module: Any) -> bool:
    return type(module).__name__ == "OptimizedModule"


class CalibrationListener(Listener):
    """Follows `update_bn`, which passes data through a model in training mode for its statistics alone."""

    def __init__(self, job: FollowedJob) -> None:
        self._job = job

    def before(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """The calibration begins."""
        self._job.calibrating += 1

    def ended(self, token: Any) -> None:
        """The calibration has ended."""
        self._job.calibrating -= 1


def install(job: FollowedJob) -> None:
    """Follow the calls of all modules."""
    path = "torch.optim.swa_utils.update_bn"
    job.functions.watch_path(Role("calibration", CalibrationListener(job), path=path))
    listener = ModuleCallListener(job)
    role = Role("forward pass", listener, path=MODULE_CALL, guard=listener.says_something)
    job.functions.watch_method(nn.Module, "__call__", role)
