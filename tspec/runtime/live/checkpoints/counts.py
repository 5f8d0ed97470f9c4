"""Reads the progress of a run from a checkpoint: loop counters, updates, loss scales, random number
generators.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch

from tspec.runtime.live.checkpoints.streams import is_state
from tspec.runtime.live.checkpoints.twisters import TwisterState, twister_state

DEPTH = 3
"""The depth within an object to which counters and optimizers are searched."""
MOST = 1000
"""The number of entries of an object that are read: a checkpoint may hold large tables."""
SCALER = {"scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker"}
"""The keys of the state of a loss scaler that is enabled."""

Keys = tuple[str, ...]
CountsByKeys = Mapping[Keys, int]
StatesByKeys = Mapping[Keys, torch.Tensor]


@dataclass(frozen=True, slots=True)
class CheckpointCounts:
    """The counts of a run's progress in a checkpoint."""

    counters: CountsByKeys
    """The integers in the checkpoint, by their keys."""
    updates: CountsByKeys
    """The number of updates that each optimizer in the checkpoint counts, by its keys."""
    scales: Mapping[Keys, float]
    """The scale of each loss scaler in the checkpoint."""
    streams: StatesByKeys
    """The states of torch's generators of random numbers."""
    twisters: Mapping[Keys, TwisterState]
    """The states of Python's and numpy's generators of random numbers."""


def counts_of(value: Any) -> CheckpointCounts:
    """The counts in a loaded or saved object; empty if it is no checkpoint."""
    counters: dict[Keys, int] = {}
    updates: dict[Keys, int] = {}
    scales: dict[Keys, float] = {}
    for keys, found in _walk(value, (), DEPTH):
        if not isinstance(found, Mapping):
            counters[keys] = int(found)
        elif "scale" in found:
            scales[keys] = float(found["scale"])
        else:
            count = _updates(found.get("state"))
            if count:
                updates[keys] = count
    streams: dict[Keys, torch.Tensor] = {}
    twisters: dict[Keys, TwisterState] = {}
    for keys, state in _states(value, (), DEPTH):
        if isinstance(state, TwisterState):
            twisters[keys] = state
        else:
            streams[keys] = state
    return CheckpointCounts(counters, updates, scales, streams, twisters)


def _states(
    value: Any, keys: Keys, depth: int
) -> Iterator[tuple[Keys, torch.Tensor | TwisterState]]:
    """The states of generators within an object, also in lists of them."""
    twister = twister_state(value)
    if is_state(value):
        yield keys, value
    elif twister is not None:
        yield keys, twister
    elif depth:
        each: Iterable[tuple[Any, Any]] = ()
        if isinstance(value, Mapping):
            each = value.items()
        elif isinstance(value, (list, tuple)):
            each = enumerate(value)
        for key, inner in islice(each, MOST):
            yield from _states(inner, (*keys, str(key)), depth - 1)


def first_tensors(value: Any) -> Iterator[torch.Tensor]:
    """One tensor of the state of each optimizer within an object."""
    for _, found in _walk(value, (), DEPTH):
        if isinstance(found, Mapping):
            yield from islice(tensors_of(found), 1)


def _walk(value: Any, keys: Keys, depth: int) -> Iterator[tuple[Keys, Any]]:
    """The integers, the counts of averaged weights, and the states of optimizers and loss scalers
    within an object. A list may hold several optimizers. Integers in a list are no counters.
    """
    if type(value) is int or (keys and keys[-1] == "n_averaged" and _is_count(value)):
        yield keys, value
    elif isinstance(value, Mapping):
        if ("state" in value and "param_groups" in value) or value.keys() == SCALER:
            yield keys, value
        elif depth:
            for key, inner in list(value.items())[:MOST]:
                if isinstance(key, str):
                    yield from _walk(inner, (*keys, key), depth - 1)
    elif depth and isinstance(value, (list, tuple)):
        for place, inner in enumerate(value[:MOST]):
            if isinstance(inner, Mapping):
                yield from _walk(inner, (*keys, str(place)), depth - 1)


def tensors_of(state: Any) -> Iterator[torch.Tensor]:
    """The tensors in the state dict of an optimizer."""
    held = state.get("state") if isinstance(state, Mapping) else None
    for each in held.values() if isinstance(held, Mapping) else ():
        for one in each.values() if isinstance(each, Mapping) else ():
            if isinstance(one, torch.Tensor):
                yield one


def _is_count(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.numel() == 1


def _updates(state: Any) -> int:
    """The updates that the state of an optimizer counts; 0 if it counts none."""
    if not isinstance(state, Mapping):
        return 0
    for each in state.values():
        step = each.get("step") if isinstance(each, Mapping) else None
        if isinstance(step, torch.Tensor) and step.numel() == 1:
            return int(step)
        if isinstance(step, int):
            return step
    return 0
