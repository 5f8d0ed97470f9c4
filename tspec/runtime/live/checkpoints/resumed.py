"""Find parts of a checkpoint that a resumed run lost: compare the saved checkpoint with the loaded
one.

A checkpoint counts steps or epochs, and optimizers such as Adam count their updates. If a run
resumes, both counts continue. If it only takes over weights, both start again. If steps continue
and updates start again, the optimizer's state was not loaded. If updates continue, so must the
schedule, an average of the weights, the scale of the loss, random numbers, the steps or epochs, and
the epoch by which samplers shuffle.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from tspec.runtime.live.checkpoints.counts import (
    CheckpointCounts,
    CountsByKeys,
    Keys,
    StatesByKeys,
    counts_of,
    first_tensors,
)
from tspec.runtime.live.checkpoints.files import CheckpointFiles, file_name
from tspec.runtime.live.checkpoints.kept_weights import KeptWeights
from tspec.runtime.live.checkpoints.streams import began_anew
from tspec.runtime.live.checkpoints.twisters import TwisterState, states_here, was_left_behind

LASTING = ("last_epoch", "n_averaged")
"""The names of the counters in states of schedules and of averaged weights."""
LOOP = re.compile(r"((current|global|num|n|total)_)?(step|epoch|iter|iteration|update|batch)(e?s)?")
"""The names of a loop's counters of steps, updates and epochs. `best_step` is none."""


class LoadedCheckpoints:
    """Remembers the counts of the checkpoints that were loaded last."""

    def __init__(self) -> None:
        self.files = CheckpointFiles()
        self.weights = KeptWeights()
        self._loaded: dict[tuple[Keys, ...], CheckpointCounts] = {}
        """Loaded counts, by the optimizers in the file.

        Frameworks exchange states through files in memory.
        """
        self._beside: dict[str, CheckpointCounts] = {}
        """Counts of files without an optimizer, such as a schedule's, by file name."""
        self._uncounted: tuple[str, CheckpointCounts] | None = None
        """The name and the counts of the latest file with an optimizer that does not count its
        updates, such as SGD.
        """
        self._made: list[tuple[int, int]] = []
        """For each optimizer saved last, its updates since it was loaded and its updates before."""
        self._scales: dict[int, float] = {}
        """Number of a loss scaler -> its first scale after the latest checkpoint was loaded."""
        self._seeded = False
        """The script has seeded its random numbers since it read states of generators."""
        self._here: list[TwisterState] = []
        """The states of Python's and numpy's generators at the time when such states were read."""

    def loaded(self, value: Any, file: Any = None) -> None:
        """Remember a loaded file, if it holds a checkpoint with an optimizer that counts its
        updates, or a part of such a checkpoint.
        """
        counts, name = counts_of(value), file_name(file)
        if counts.streams:
            self._seeded = False
        if counts.twisters:
            self._here = states_here()
        if counts.updates:
            self._loaded.pop(tuple(counts.updates), None)
            self._loaded[tuple(counts.updates)] = counts
            self._scales.clear()
            self.weights.read(value)
            if name is not None:
                self.files.read(value, name)
        elif (counts.counters or counts.streams or counts.twisters) and name is not None:
            self._beside[name] = counts
            if any(True for _ in first_tensors(value)):
                self._uncounted = name, counts
                self.files.holds_states(value, name)

    def given(self, state: Any) -> None:
        """An optimizer takes a state over."""
        self.files.given(state)
        self.weights.given(state)

    def unscales(self, scaler: Any) -> None:
        """A loss scaler is about to divide gradients by its scale."""
        if self._loaded and id(scaler) not in self._scales:
            self._scales[id(scaler)] = scaler.get_scale()

    def seeds(self) -> None:
        """The script seeds its random numbers."""
        self._seeded = True

    def lost_updates(self, value: Any) -> int | None:
        """The number of updates that a saved optimizer has lost since the last loaded checkpoint.

        An optimizer has lost updates if it does not count them, although the counters beside it, or
        another optimizer, continue from that checkpoint. 0 if all updates are counted. None if no
        counter or optimizer shows it, or if they do not continue.
        """
        now = counts_of(value)
        before = self._before(now)
        if before is None:
            return None
        counted = _growths(before.counters, now.counters)
        others = _growths(before.updates, now.updates)
        lost = [
            # one that makes no more updates, as of a stage that is over, has lost none
            _lost(before.updates[key], updates, counted + others * (updates != before.updates[key]))
            for key, updates in now.updates.items()
            if key in before.updates
        ]
        known = [each for each in lost if each is not None]
        return max(known) if known else None

    def restarted(
        self, value: Any, file: Any = None, sampled: Sequence[int] = ()
    ) -> list[str] | None:
        """The counters of a saved object that restarted, although its optimizers' updates continue
        from the last loaded checkpoint.

        These are counters of schedules and averages, and those of the loop if no counter of the
        loop continues. `sampler.epoch` is added if epochs continue while one of `sampled`, the
        epochs set on samplers, restarts. Loss scales that no scaler began with, states of this
        rank's random number generators that do not derive from the loaded state, and weights that
        no model took over are added too. An object without an optimizer belongs to the one saved
        before it. None if updates do not continue.
        """
        now = counts_of(value)
        before = self._before(now) if now.updates else self._beside.get(file_name(file) or "")
        if before is not None and now.updates:
            self._made = _growths(before.updates, now.updates)
        elif not now.updates and any(True for _ in first_tensors(value)):
            before = self._taken_without_counts()
            self._made = [] if before is None else _growths(before.counters, _progress(before, now))
        if before is None or not self._made:
            return None
        anew = _counters_anew(before.counters, now.counters, self._made)
        if _sampler_anew(before.counters, now.counters, sampled):
            anew.append("sampler.epoch")
        anew += self._scales_anew(before.scales, now.scales)
        anew += map(".".join, self.weights.left_behind(value))
        anew += self._streams_anew(before.streams, now.streams)
        return sorted(anew + self._twisters_anew(before.twisters, now.twisters))

    def _taken_without_counts(self) -> CheckpointCounts | None:
        """The latest file of an optimizer that does not count its updates, if its state was taken
        over.
        """
        if self._uncounted is None or not self.files.is_taken(self._uncounted[0]):
            return None
        return self._uncounted[1]

    def _scales_anew(self, before: Mapping[Keys, float], now: Mapping[Keys, float]) -> list[str]:
        """The loaded scales of losses with which no scaler began."""
        used = self._scales.values()
        if not used:
            return []
        return [".".join((*key, "scale")) for key in now if before.get(key, min(used)) not in used]

    def _streams_anew(self, before: StatesByKeys, now: StatesByKeys) -> list[str]:
        """The keys of saved states of this process's torch generator that do not derive from the
        loaded states.
        """
        if self._seeded or not before.keys() & now.keys():
            return []
        here = torch.get_rng_state()
        return [
            ".".join(key)
            for key, state in now.items()
            if key in before and torch.equal(state, here) and began_anew(state, before[key])
        ]

    def _twisters_anew(
        self, before: Mapping[Keys, TwisterState], now: Mapping[Keys, TwisterState]
    ) -> list[str]:
        """The keys of saved states of Python's and numpy's generators here that do not derive from
        the loaded states.
        """
        both = now.keys() & before.keys()
        if not both:
            return []
        current = states_here()
        return [
            ".".join(key)
            for key in both
            if now[key] in current and was_left_behind(now[key], self._here, before[key])
        ]

    def _before(self, now: CheckpointCounts) -> CheckpointCounts | None:
        """The latest checkpoint that was loaded with one of these optimizers."""
        found = [each for each in self._loaded.values() if now.updates.keys() & each.updates]
        return found[-1] if found else None


def _growths(loaded: CountsByKeys, now: CountsByKeys) -> list[tuple[int, int]]:
    """For each count that grew since it was loaded: its growth, and its loaded value. Counts of
    zero are left out.
    """
    return [
        (count - loaded[key], loaded[key])
        for key, count in now.items()
        if 0 < loaded.get(key, 0) < count
    ]


def _counters_anew(
    before: CountsByKeys, now: CountsByKeys, made: Sequence[tuple[int, int]]
) -> list[str]:
    """The restarted counters of schedules and averages, and those of the loop if no counter of the
    loop continues.
    """
    looked_at = _lasting(before, now)
    loop = _of_loop(before, now)
    if not any(now[key] > before[key] for key in loop):
        looked_at += loop
    return [
        ".".join(key)
        for key in looked_at
        if any(_is_anew(before[key], now[key], *each) for each in made)
    ]


def _sampler_anew(before: CountsByKeys, now: CountsByKeys, sampled: Sequence[int]) -> bool:
    """True if epochs continue while an epoch set on a sampler restarts."""
    epochs = [(before[key], now[key]) for key in _of_loop(before, now) if "epoch" in key[-1]]
    return any(_samples_anew(one, *each) for each in epochs for one in sampled)


def _of_loop(before: CountsByKeys, now: CountsByKeys) -> list[Keys]:
    """The counters of the loop that both hold."""
    return [key for key in now if key in before and LOOP.fullmatch(key[-1])]


def _lasting(before: CountsByKeys, now: CountsByKeys) -> list[Keys]:
    """The counters of schedules and averages that both hold."""
    return [key for key in now if key in before and key[-1] in LASTING]


def _progress(before: CheckpointCounts, now: CheckpointCounts) -> CountsByKeys:
    """What the counters that both hold say now: those of the loop, of schedules and of averages."""
    both = (before.counters, now.counters)
    return {key: now.counters[key] for key in (*_of_loop(*both), *_lasting(*both))}


def _is_anew(loaded: int, now: int, more: int, earlier: int) -> bool:
    """True if a counter that was `loaded` after `earlier` updates counts only the `more` updates
    since then.
    """
    if not 0 < loaded >= now:
        return False
    for first in (0, 1):  # a counter that begins with 0 has counted one more than it says
        expected = more * (loaded + first) / earlier
        if abs(now + first - expected) <= 0.1 * expected:
            return True
    return False


def _samples_anew(sampled: int, loaded: int, now: int) -> bool:
    """True if a sampler's epoch counts from the start of this run, while the loop continued from
    epoch `loaded` to `now`.

    Zero does not count: the sampler's epoch may never be set.
    """
    made = now - loaded
    return loaded > 0 and 0 < sampled < now - 1 and sampled in (made - 1, made)


def _lost(loaded: int, now: int, grown: list[tuple[int, int]]) -> int | None:
    """The updates lost by an optimizer that counted `loaded` updates and now counts `now`. None if
    no other counter grew in proportion.
    """
    if not grown:
        return None
    if now > loaded:
        return 0
    for more, earlier in grown:
        # The updates expected from the counter's growth at its earlier rate. An optimizer that
        # restarted would count only these.
        for began in (earlier, earlier + 1):  # a counter that begins with 0
            if abs(now - more * loaded / began) * began <= 0.1 * loaded * more:
                return loaded
    return None
