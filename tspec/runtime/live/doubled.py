"""Which parameters two optimizers update with one gradient."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch

UPDATES = 20
"""So many updates of each optimizer are looked at: what it holds seldom changes."""


@dataclass(frozen=True, slots=True)
class _UsedGradient:
    """A gradient by which an optimizer has moved a parameter."""

    optimizer: int
    gradient: weakref.ref[torch.Tensor]
    version: int


class DoubledUpdates:
    """Follows which gradient, in which version, each optimizer has moved a parameter by.

    An optimizer that makes its update by calling another one (a wrapper) is left out, and so is one that leaves the
    parameter as it is (a preconditioner of gradients).
    """

    def __init__(self) -> None:
        self._open: dict[int, list[tuple[torch.Tensor, torch.Tensor, int, int]]] = {}
        """By the number of an optimizer whose update has begun: parameters, gradients, and the versions of both."""
        self._used: dict[int, _UsedGradient] = {}
        """By the id of the parameter."""
        self._doubled: dict[int, list[torch.Tensor]] = {}
        self._updates: Counter[int] = Counter()

    def of(self, optimizer: int) -> list[torch.Tensor]:
        """The parameters that its latest update moved by a gradient by which another optimizer had moved them."""
        return self._doubled.get(optimizer, [])

    def before_update(self, optimizer: int, parameters: Sequence[torch.Tensor]) -> None:
        """An update of an optimizer begins."""
        self._doubled.pop(optimizer, None)
        if self._open:
            self._open = {each: [] for each in (*self._open, optimizer)}
            return
        self._updates[optimizer] += 1
        looked_at = self._updates[optimizer] <= UPDATES
        self._open[optimizer] = [
            (each, each.grad, each.grad._version, each._version)
            for each in (parameters if looked_at else ())
            if each.grad is not None
        ]

    def after_update(self, optimizer: int) -> None:
        """It is over."""
        for each, grad, version, before in self._open.pop(optimizer, ()):
            if each._version == before or each.grad is not grad or grad._version != version:
                continue
            used = self._used.get(id(each))
            if (
                used is not None
                and used.optimizer != optimizer
                and used.gradient() is grad
                and used.version == version
            ):
                self._doubled.setdefault(optimizer, []).append(each)
            self._used[id(each)] = _UsedGradient(optimizer, weakref.ref(grad), version)

    def forget(self, optimizers: Iterable[int]) -> None:
        """These optimizers are gone."""
        gone = set(optimizers)
        self._used = {key: used for key, used in self._used.items() if used.optimizer not in gone}
        for each in gone:
            self._open.pop(each, None)
            self._doubled.pop(each, None)
            del self._updates[each]
