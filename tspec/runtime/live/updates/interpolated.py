"""Optimizers whose parameters a script moves back part of the way at times, as Lookahead and
Reptile do.

Between two updates, a weight `b` becomes `a + part * (b - a)`. Here `a` is its value when the
script last wrote to it, or before the first update. A change by mistake does not lie between `a`
and `b`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch

from tspec.runtime.live.features import local_part

SAMPLED = 128
"""The number of elements of one parameter that are kept. They stay on its device, so that nothing
waits for them before they are read.
"""
KEPT = 64
"""The number of updates that are kept until they are read."""
ENDS = 0.01
"""A part of the way to either end. A weight nearer than that to an end was reset, or left
unchanged.
"""
ROUNDING = 16
"""The largest rounding error, in units in the last place."""


@dataclass(slots=True)
class _Track:
    """The values of one parameter of an optimizer before and after its last updates."""

    parameter: torch.Tensor
    held: frozenset[int] = frozenset()
    """The ids of the tensors that the optimizer holds."""
    before: deque[torch.Tensor] = field(default_factory=lambda: deque(maxlen=KEPT))
    after: deque[torch.Tensor] = field(default_factory=lambda: deque(maxlen=KEPT))
    begin: torch.Tensor | None = None
    """The value that the script last wrote to the parameter; at first, its value before the first
    update.
    """
    hits: int = 0
    misses: int = 0


class InterpolatedParameters:
    """Follows one parameter of each optimizer, which stands for all of them."""

    def __init__(self) -> None:
        self._tracks: dict[int, _Track] = {}
        """Number of the optimizer, as long as it exists -> its track."""

    def of(self, parameters: Sequence[torch.Tensor]) -> list[bool]:
        """True for each parameter that the script interpolates. One parameter of each optimizer is
        read for all.
        """
        found = [track.held for track in self._tracks.values() if _is_interpolated(track)]
        return [any(id(each) in held for held in found) for each in parameters]

    def before_update(self, optimizer: int, parameters: Sequence[torch.Tensor]) -> None:
        """An update begins."""
        track = self._tracks.get(optimizer)
        if track is None:
            watched = _watched(parameters)
            if watched is None:
                return
            track = self._tracks[optimizer] = _Track(watched)
            track.begin = _sample(watched)
        elif len(track.before) < len(track.after):
            track.before.append(_sample(track.parameter))
        if len(track.held) != len(parameters):
            track.held = frozenset(map(id, parameters))

    def after_update(self, optimizer: int) -> None:
        """An update returned."""
        track = self._tracks.get(optimizer)
        if track is None:
            return
        if len(track.after) == KEPT:
            _read(track)
        if len(track.before) == len(track.after):
            track.after.append(_sample(track.parameter))

    def forget(self, optimizers: Iterable[int]) -> None:
        """These optimizers are gone."""
        for each in optimizers:
            self._tracks.pop(each, None)


def _watched(parameters: Sequence[torch.Tensor]) -> torch.Tensor | None:
    """The largest plain floating-point tensor. Smaller ones, such as biases, may barely move."""
    plain = [
        each
        for each in parameters
        if each.is_floating_point() and not hasattr(each, "placements") and each.numel() > 1
    ]
    return max(plain, key=torch.Tensor.numel, default=None)


def _sample(parameter: torch.Tensor) -> torch.Tensor:
    """Elements from all over a parameter, as they are now: `[n]`. An odd distance meets all columns, also where some of them,
    as of pixels that are always dark, are never trained. None of a parameter whose memory was given back.
    """  # fmt: skip
    part = local_part(parameter)
    flat = parameter.new_empty(0) if part is None else part.reshape(-1)
    return flat[:: flat.numel() // SAMPLED | 1][:SAMPLED].clone()


def _is_interpolated(track: _Track) -> bool:
    """True if every change that the script made so far moved the parameter back part of the way."""
    _read(track)
    if track.misses or not track.after or track.begin is None:
        return track.hits > 0 and not track.misses
    moved = _moved(track.begin, track.after[-1], _sample(track.parameter))
    return moved is not False and (track.hits > 0 or moved is True)


def _read(track: _Track) -> None:
    """Classify the kept changes. The last update is left out if the next one has not begun."""
    while track.before and track.begin is not None:
        left, found = track.after.popleft(), track.before.popleft()
        moved = _moved(track.begin, left, found)
        if moved is None:
            continue
        track.begin = found
        track.hits += moved
        track.misses += not moved


def _moved(begin: torch.Tensor, left: torch.Tensor, found: torch.Tensor) -> bool | None:
    """True if `found` lies between `begin` and `left`. None if it equals `left`."""
    if torch.equal(left, found):
        return None
    if begin.shape != left.shape or left.shape != found.shape:
        return False
    eps = torch.finfo(left.dtype).eps
    begin, left, found = begin.double(), left.double(), found.double()
    way = left - begin
    part = float(way.dot(found - begin) / way.dot(way).clamp(min=1e-300))
    rounding = ROUNDING * eps * torch.maximum(begin.abs(), left.abs())
    near = bool(((begin + part * way - found).abs() <= rounding).all())
    return near and ENDS < part < 1 - ENDS
