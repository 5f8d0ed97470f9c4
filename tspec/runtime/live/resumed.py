"""Whether a run that goes on from a checkpoint left a part of it behind: what it saves is compared with what was loaded.

A checkpoint counts steps or epochs, and optimizers such as Adam count their updates. Where a run goes on, both go on. Where it only
takes over weights, both begin anew. Where the first goes on and the second begins anew, nobody loaded the optimizer's state. Where
the optimizer goes on, so do the schedule, an average of the weights, the scale of the loss, random numbers, the steps or epochs
themselves, and the epoch that samplers shuffle by. A rank that writes a file of its own goes on from the file of that name.
"""

from __future__ import annotations

import os
import re
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch

from tspec.runtime.live.streams import began_anew, is_state

DEPTH = 3
"""So deep within an object are counters and optimizers looked for."""
MOST = 1000
"""Entries of an object that are looked at: a checkpoint may hold large tables."""
LASTING = ("last_epoch", "n_averaged")
"""What schedules and averages of weights count in their states."""
LOOP = re.compile(r"((current|global|num|n|total)_)?(step|epoch|iter|iteration|update|batch)(e?s)?")
"""What a loop calls its steps, updates and epochs. `best_step` is none."""

SCALER = {"scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker"}
"""The keys of the state of a loss scaler that is enabled."""

_Keys = tuple[str, ...]
_CountsByKeys = Mapping[_Keys, int]
_StatesByKeys = Mapping[_Keys, torch.Tensor]


@dataclass(frozen=True, slots=True)
class _Counts:
    """What a checkpoint says of how far a run has come."""

    counters: _CountsByKeys
    """Its whole numbers, by their keys."""
    updates: _CountsByKeys
    """Of each optimizer in it, by its keys, how many updates it counts."""
    scales: Mapping[_Keys, float]
    """Of each loss scaler in it, its scale."""
    streams: _StatesByKeys
    """The states of generators of random numbers."""


class LoadedCheckpoints:
    """Remembers the counts of the checkpoints that were loaded last."""

    def __init__(self) -> None:
        self._loaded: dict[tuple[_Keys, ...], _Counts] = {}
        """By the optimizers in them. Frameworks send one another states through files in memory."""
        self._beside: dict[str, _Counts] = {}
        """Those without an optimizer, by the names of their files, such as that of a schedule."""
        self._made: list[tuple[int, int]] = []
        """What the optimizers saved last had made of updates since they were loaded, and before."""
        self._states: list[tuple[weakref.ref[torch.Tensor], str]] = []
        """A tensor of each optimizer's state that was read, and the name of its file."""
        self._names: set[str] = set()
        """The names, without folders, of the files that were such checkpoints."""
        self._taken: set[str] = set()
        """Those of them whose states optimizers were given."""
        self._scales: dict[int, float] = {}
        """By which scale each loss scaler divided first after the latest checkpoint was read."""
        self._seeded = False
        """The script has seeded its random numbers since it read states of generators."""

    def loaded(self, value: Any, file: Any = None) -> None:
        """Take in what a file held, if that is a checkpoint with an optimizer that counts its updates, or a part of one."""
        counts, name = _counts(value), _name(file)
        if counts.streams:
            self._seeded = False
        if counts.updates:
            self._loaded.pop(tuple(counts.updates), None)
            self._loaded[tuple(counts.updates)] = counts
            self._scales.clear()
            if name is not None:
                self._names.add(name)
                self._states += [(weakref.ref(each), name) for each in _first_tensors(value)]
        elif (counts.counters or counts.streams) and name is not None:
            self._beside[name] = counts

    def given(self, state: Any) -> None:
        """An optimizer takes a state over."""
        tensors = {id(each) for each in _tensors(state)}
        self._taken.update(name for one, name in self._states if id(one()) in tensors)

    def unscales(self, scaler: Any) -> None:
        """A loss scaler is about to divide gradients by its scale."""
        if self._loaded and id(scaler) not in self._scales:
            self._scales[id(scaler)] = scaler.get_scale()

    def seeds(self) -> None:
        """The script seeds its random numbers."""
        self._seeded = True

    def goes_on_from(self, value: Any, file: Any) -> str:
        """`own` if the optimizer took over a checkpoint of the name under which one is saved, `other` if one of other names; `none` if
        none was read, or what is saved has no optimizer that counts its updates, or no name."""
        name, names = _name(file), self._taken or self._names
        if name is None or not names or not _counts(value).updates:
            return "none"
        return "own" if name in names else "other"

    def lost_updates(self, value: Any) -> int | None:
        """How many updates an optimizer that is saved does not know of, although the counters beside it go on from the checkpoint
        that was loaded last; 0 if it knows of all, None if counters do not tell or do not go on.
        """  # fmt: skip
        now = _counts(value)
        before = self._before(now)
        if before is None:
            return None
        grown = _growths(before.counters, now.counters)
        lost = [
            _lost(before.updates[key], updates, grown)
            for key, updates in now.updates.items()
            if key in before.updates
        ]
        told = [each for each in lost if each is not None]
        return max(told) if told else None

    def restarted(
        self, value: Any, file: Any = None, sampled: Sequence[int] = ()
    ) -> list[str] | None:
        """The counters of a saved object that count anew, although its optimizers' updates go on from the checkpoint that was
        loaded last: of schedules and averages, and those of the loop, if none of these goes on. If epochs go on, `sampler.epoch` where
        one of the epochs that samplers were told, `sampled`, counts anew. The scales of losses that no scaler began with, and
        this rank's random numbers, if they do not come from the state that was read. What has no
        optimizer goes with the one that was saved before it. None if updates do not go on.
        """  # fmt: skip
        now = _counts(value)
        before = self._before(now) if now.updates else self._beside.get(_name(file) or "")
        if before is not None and now.updates:
            self._made = _growths(before.updates, now.updates)
        made = self._made
        if before is None or not made:
            return None
        known = before.counters
        loop = [key for key in now.counters if key in known and LOOP.fullmatch(key[-1])]
        looked_at = [key for key in now.counters if key in known and key[-1] in LASTING]
        if not any(now.counters[key] > known[key] for key in loop):
            looked_at += loop
        anew = [
            ".".join(key)
            for key in looked_at
            if any(_is_anew(known[key], now.counters[key], *each) for each in made)
        ]
        epochs = [(known[key], now.counters[key]) for key in loop if "epoch" in key[-1]]
        if any(_samples_anew(one, *each) for each in epochs for one in sampled):
            anew.append("sampler.epoch")
        if used := self._scales.values():
            anew += [
                ".".join((*key, "scale"))
                for key in now.scales
                if before.scales.get(key, min(used)) not in used
            ]
        return sorted(anew + self._streams_anew(before.streams, now.streams))

    def _streams_anew(self, before: _StatesByKeys, now: _StatesByKeys) -> list[str]:
        """The states of this process's generator that do not come from those that were read."""
        if self._seeded or not before.keys() & now.keys():
            return []
        here = torch.get_rng_state()
        return [
            ".".join(key)
            for key, state in now.items()
            if key in before and torch.equal(state, here) and began_anew(state, before[key])
        ]

    def _before(self, now: _Counts) -> _Counts | None:
        """The latest checkpoint that was loaded with one of these optimizers."""
        found = [each for each in self._loaded.values() if now.updates.keys() & each.updates]
        return found[-1] if found else None


def _name(file: Any) -> str | None:
    """The name of a file without its folder; None of an open one."""
    return os.path.basename(os.fspath(file)) if isinstance(file, (str, os.PathLike)) else None


def _growths(loaded: _CountsByKeys, now: _CountsByKeys) -> list[tuple[int, int]]:
    """By how much each count grew since it was loaded, and what it was then. Counts of zero tell nothing."""
    return [
        (count - loaded[key], loaded[key])
        for key, count in now.items()
        if 0 < loaded.get(key, 0) < count
    ]


def _is_anew(loaded: int, now: int, more: int, earlier: int) -> bool:
    """Whether a counter that was at `loaded` after `earlier` updates counts only the `more` updates since then."""
    if not 0 < loaded >= now:
        return False
    for first in (0, 1):  # a counter that begins with 0 has counted one more than it says
        expected = more * (loaded + first) / earlier
        if abs(now + first - expected) <= 0.1 * expected:
            return True
    return False


def _samples_anew(sampled: int, loaded: int, now: int) -> bool:
    """Whether a sampler was told the number of an epoch in this run, where the loop went on from epoch `loaded` to `now`. Zero may
    be that of a sampler that is told nothing."""
    made = now - loaded
    return loaded > 0 and 0 < sampled < now - 1 and sampled in (made - 1, made)


def _lost(loaded: int, now: int, grown: list[tuple[int, int]]) -> int | None:
    """How many updates an optimizer lost that counted `loaded` ones and counts `now`; None if the counters that grew do not tell."""
    if not grown:
        return None
    if now > loaded:
        return 0
    for more, earlier in grown:
        # As many updates as the counter grew by, at the rate of before: of a run that began anew it would be all that it counts.
        for began in (earlier, earlier + 1):  # a counter that begins with 0
            if abs(now - more * loaded / began) * began <= 0.1 * loaded * more:
                return loaded
    return None


def _counts(value: Any) -> _Counts:
    counters: dict[_Keys, int] = {}
    updates: dict[_Keys, int] = {}
    scales: dict[_Keys, float] = {}
    for keys, found in _walk(value, (), DEPTH):
        if not isinstance(found, Mapping):
            counters[keys] = int(found)
        elif "scale" in found:
            scales[keys] = float(found["scale"])
        else:
            count = _updates(found.get("state"))
            if count:
                updates[keys] = count
    return _Counts(counters, updates, scales, dict(_streams(value, (), DEPTH)))


def _streams(value: Any, keys: _Keys, depth: int) -> Iterator[tuple[_Keys, torch.Tensor]]:
    """The states of generators within an object, also in lists of them."""
    if is_state(value):
        yield keys, value
    elif depth:
        each: Iterable[tuple[Any, Any]] = ()
        if isinstance(value, Mapping):
            each = value.items()
        elif isinstance(value, (list, tuple)):
            each = enumerate(value)
        for key, inner in islice(each, MOST):
            yield from _streams(inner, (*keys, str(key)), depth - 1)


def _first_tensors(value: Any) -> Iterator[torch.Tensor]:
    """One tensor of the state of each optimizer within an object."""
    for _, found in _walk(value, (), DEPTH):
        if isinstance(found, Mapping):
            yield from islice(_tensors(found), 1)


def _walk(value: Any, keys: _Keys, depth: int) -> Iterator[tuple[_Keys, Any]]:
    """The whole numbers, how many weights averages hold, and the states of optimizers and loss scalers within an object."""
    if type(value) is int or (keys and keys[-1] == "n_averaged" and _is_count(value)):
        yield keys, value
    elif isinstance(value, Mapping):
        if ("state" in value and "param_groups" in value) or value.keys() == SCALER:
            yield keys, value
        elif depth:
            for key, inner in list(value.items())[:MOST]:
                if isinstance(key, str):
                    yield from _walk(inner, (*keys, key), depth - 1)


def _tensors(state: Any) -> Iterator[torch.Tensor]:
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
