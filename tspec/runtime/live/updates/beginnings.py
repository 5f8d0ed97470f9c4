"""Averages of weights that begin with other values than the weights that they follow.

An average moves part of the way to its weights: from `a` to `a + part * (w - a)`. One that began as a
copy still has their direction when it first moves, since they were updated only a few times. The angle
between one that was built anew and its weights is that of two random vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch

from tspec.runtime.live.features import local_part
from tspec.runtime.live.identity import IdentityMap, IdentitySet

UPDATES = 20
"""The number of updates of an optimizer in which the averages of its weights are followed."""
SAMPLED = 128
"""The number of elements of one parameter that are compared."""
LEAST = 64
"""The number of elements of the smallest parameter that is compared. Fewer may agree by chance."""
FARTHEST = 0.6
"""The largest part of the way that an average moves at once. A copy moves all of it."""
STRAIGHT = 0.05
"""The largest part of a movement that does not lead to the weights, by round-off."""
ALIKE = 0.5
"""The least cosine of the angle between related values. That of random ones is near 0. Lengths are not
compared: layers may begin with zeros, and their average is found after it has moved once or twice.
"""
EMPTY = 1e-3
"""The largest squared norm, as a part of that of the weights, of an average that begins with zeros."""

Pairs = Sequence[tuple[torch.Tensor, Sequence[torch.Tensor]]]
"""Parameters that no optimizer holds, each with the trained ones that it may follow."""


@dataclass(slots=True)
class _Followed:
    """What is known of one parameter that may be an average."""

    last: torch.Tensor | None = None
    """Its sample when the last update began, until it has moved."""
    moved: bool = False


@dataclass(slots=True)
class _OfOptimizer:
    """The averages of the weights of one optimizer."""

    updates: int = 0
    followed: IdentityMap[torch.Tensor, _Followed] = field(
        default_factory=lambda: IdentityMap(_Followed)
    )
    unrelated: list[torch.Tensor] = field(default_factory=list)


class AverageBeginnings:
    """Compares averages with their weights when they first move."""

    def __init__(self) -> None:
        self._known: dict[int, _OfOptimizer] = {}
        """Number of an optimizer -> the averages of its weights."""
        self.moved: IdentitySet[torch.Tensor] = IdentitySet()
        """Parameters that no optimizer held and that changed between two of the first updates."""

    def is_due(self, optimizer: int) -> bool:
        """Count an update of the optimizer that begins; True if averages are followed in it."""
        known = self._known.setdefault(optimizer, _OfOptimizer())
        known.updates += 1
        known.unrelated.clear()
        if known.updates == UPDATES + 1:
            known.followed = IdentityMap(_Followed)
        return known.updates <= UPDATES

    def before_update(self, optimizer: int, pairs: Pairs) -> None:
        """An update begins. `pairs` are the parameters that may be averages of the optimizer's."""
        known = self._known[optimizer]
        for average, weights in pairs:
            followed = known.followed.of(average)
            if followed.moved:
                continue
            now, last = _sample(average), followed.last
            followed.last = now
            if last is None or last.shape != now.shape or torch.equal(last, now):
                continue
            followed.moved, followed.last = True, None
            self.moved.add(average)
            if any(_begins_apart(last, now, _sample(each)) for each in weights):
                known.unrelated.append(average)

    def of(self, optimizer: int) -> list[torch.Tensor]:
        """The averages that were found to begin apart from their weights when the latest update of
        the optimizer began.
        """
        known = self._known.get(optimizer)
        return [] if known is None else list(known.unrelated)

    def forget(self, optimizers: Iterable[int]) -> None:
        """These optimizers are gone."""
        for each in optimizers:
            self._known.pop(each, None)


def may_be_average(parameter: torch.Tensor) -> bool:
    """True for a matrix of floating-point numbers that is large enough to be compared. Vectors, as of
    norms, often begin with the same values.
    """
    return parameter.is_floating_point() and parameter.dim() > 1 and parameter.numel() >= LEAST


def _sample(parameter: torch.Tensor) -> torch.Tensor:
    """Elements from all over a parameter: `[n]`. None of a parameter whose memory was given back."""
    part = local_part(parameter.detach())
    flat = parameter.new_empty(0) if part is None else part.reshape(-1)
    return flat[:: flat.numel() // SAMPLED | 1][:SAMPLED].clone()


def _begins_apart(last: torch.Tensor, now: torch.Tensor, weights: torch.Tensor) -> bool:
    """True if an average moved from `last` to `now` towards the weights, and was unrelated to them."""
    if last.shape != weights.shape or not last.numel():
        return False
    last, now, weights = last.double(), now.double(), weights.to(last.device).double()
    way, moved = weights - last, now - last
    part = float(way.dot(moved)) / max(float(way.square().sum()), 1e-300)
    off = float((moved - part * way).norm())
    if not 0 < part <= FARTHEST or off > STRAIGHT * float(moved.norm()):
        return False
    ours, theirs = float(last.norm()), float(weights.norm())
    is_empty = ours**2 <= EMPTY * theirs**2
    return not is_empty and float(last.dot(weights)) < ALIKE * ours * theirs
