"""Checkpoints: remember the contents of loaded files, if an event compares saved objects with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from tspec.runtime.live.checkpoints.kept_weights import KeptWeights
from tspec.runtime.live.checkpoints.left_out import LeftOutParameters
from tspec.runtime.live.checkpoints.resumed import LoadedCheckpoints
from tspec.runtime.live.checkpoints.stored import StoredTensors
from tspec.runtime.live.followed import FollowedJob
from tspec.runtime.live.living import instances_of
from tspec.runtime.live.mechanisms.backward import BACKWARD
from tspec.runtime.live.watched import Listener, ReturnListener, Role

READ = "torch.load"
SHARDS_READ = "torch.distributed.checkpoint.state_dict_loader._load_state_dict"
"""The function that reads a rank's shards into its state dict. In that dict, each stateful object
is replaced by its `state_dict()`.
"""
OPTIMIZER = "torch.optim.Optimizer.load_state_dict"
LOAD = "torch.nn.Module.load_state_dict"
SCALER = "torch.amp.grad_scaler.GradScaler.step"
SEEDS = ("torch.random.manual_seed", "torch.random.seed")


class ReadListener(Listener):
    """Remembers the counts in a loaded file."""

    def __init__(self, checkpoints: LoadedCheckpoints) -> None:
        self._checkpoints = checkpoints

    def returned(
        self, token: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any
    ) -> None:
        """A file was read."""
        self._checkpoints.loaded(result, _first(args, kwargs, "f"))


class GivenListener(Listener):
    """Remembers whose state an optimizer takes over."""

    def __init__(self, checkpoints: LoadedCheckpoints) -> None:
        self._checkpoints = checkpoints

    def before(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """An optimizer is given a state."""
        self._checkpoints.given(_state_of(args, kwargs))


class StoredListener(Listener):
    """Remembers which tensors of a module have the values of a state dict."""

    def __init__(self, stored: StoredTensors) -> None:
        self._stored = stored

    def returned(
        self, token: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any
    ) -> None:
        """A module has loaded a state dict."""
        state = _state_of(args, kwargs)
        if isinstance(state, Mapping):
            self._stored.loaded(args[0], state)


class LeftOutListener(Listener):
    """Remembers which parameters a state dict lacked."""

    def __init__(self, left_out: LeftOutParameters) -> None:
        self._left_out = left_out

    def returned(
        self, token: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], result: Any
    ) -> None:
        """A module has loaded a state dict. Some classes return nothing."""
        missing = getattr(result, "missing_keys", None)
        if missing is not None:
            self._left_out.loaded(args[0], missing)


class UnscalesListener(Listener):
    """Remembers the scale with which a loss scaler begins."""

    def __init__(self, checkpoints: LoadedCheckpoints) -> None:
        self._checkpoints = checkpoints

    def before(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """A loss scaler is about to update."""
        self._checkpoints.unscales(args[0])


class TrainsListener(Listener):
    """Checks where training begins which loaded weights the models took over."""

    def __init__(self, weights: KeptWeights) -> None:
        self._weights = weights

    def before(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """A backward pass begins."""
        self._weights.trains(_tensors)


def _tensors() -> list[torch.Tensor]:
    """All tensors of this process that Python knows."""
    return instances_of(frozenset({torch.Tensor, nn.Parameter}))


def _first(args: tuple[Any, ...], kwargs: Mapping[str, Any], name: str) -> Any:
    """The first argument of a call."""
    return args[0] if args else kwargs.get(name)


def _state_of(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """The argument of `load_state_dict`, a method."""
    return args[1] if len(args) > 1 else kwargs.get("state_dict")


def install(job: FollowedJob) -> None:
    """Follow the loading of checkpoints and the use of their states, if an event compares with
    them.
    """
    watch = job.functions.watch_path
    if job.spec.computes("missing_keys"):
        watch(Role("stored", StoredListener(job.state.stored), path=LOAD))
    if job.spec.computes("values_left_out"):
        watch(Role("left out", LeftOutListener(job.state.left_out), path=LOAD))
    if not job.spec.follows("checkpoints"):
        return
    known = job.state.checkpoints
    watch(Role("read", ReadListener(known), path=READ))
    watch(Role("optimizer given", GivenListener(known), path=OPTIMIZER))
    watch(Role("unscales", UnscalesListener(known), path=SCALER))
    watch(Role("trains", TrainsListener(known.weights), path=BACKWARD))
    seeds = ReturnListener(lambda args, kwargs: known.seeds())
    for path in SEEDS:
        watch(Role("seeds", seeds, path=path))
    read = ReturnListener(lambda args, kwargs: known.loaded(_first(args, kwargs, "state_dict")))
    watch(Role("shards read", read, path=SHARDS_READ))
