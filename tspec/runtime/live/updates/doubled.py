"""Parameters that two optimizers update with one gradient."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch

UPDATES = 20
"""The number of updates of each optimizer that are checked, as its parameters seldom change."""


@dataclass(frozen=True, slots=True)
class _UsedGradient:
    """A gradient with which an optimizer has updated a parameter."""

    optimizer: int
    gradient: weakref.ref[torch.Tensor]
    version: int


@dataclass(frozen=True, slots=True)
class _Begun:
    """A parameter where an update begins, with its gradient and the versions of both."""

    parameter: torch.Tensor
    gradient: torch.Tensor
    before: int
    version: int

    def has_moved(self) -> bool:
        """The parameter was changed since, and its gradient was not."""
        return (
            self.parameter._version != self.before
            and self.parameter.grad is self.gradient
            and self.gradient._version == self.version
        )


class DoubledUpdates:
    """Tracks the gradient, with its version, by which each optimizer updated each parameter.

    An optimizer that updates by calling another one (a wrapper) is left out, and so is one that
    leaves the parameter unchanged (a preconditioner of gradients).
    """

    def __init__(self) -> None:
        self._open: dict[int, list[_Begun]] = {}
        """Number of an optimizer whose update has begun -> its parameters."""
        self._used: dict[int, _UsedGradient] = {}
        """Id of a parameter -> the gradient last used for it."""
        self._updates: Counter[int] = Counter()

    def before_update(self, optimizer: int, parameters: Sequence[torch.Tensor]) -> None:
        """An update of an optimizer begins."""
        if self._open:
            self._open = {each: [] for each in (*self._open, optimizer)}
            return
        self._updates[optimizer] += 1
        looked_at = self._updates[optimizer] <= UPDATES
        self._open[optimizer] = [
            _Begun(each, each.grad, each._version, each.grad._version)
            for each in (parameters if looked_at else ())
            if each.grad is not None
        ]

    def of(self, optimizer: int) -> list[torch.Tensor] | None:
        """The parameters that the returning update moved by a gradient which another optimizer had
        already used. None if the update is not among those that are checked.
        """
        if self._updates[optimizer] > UPDATES:
            return None
        return [
            begun.parameter
            for begun in self._moved(optimizer)
            if (used := self._used.get(id(begun.parameter))) is not None
            and used.optimizer != optimizer
            and used.gradient() is begun.gradient
            and used.version == begun.gradient._version
        ]

    def after_update(self, optimizer: int) -> None:
        """The update is over."""
        for begun in self._moved(optimizer):
            self._used[id(begun.parameter)] = _UsedGradient(
                optimizer, weakref.ref(begun.gradient), begun.gradient._version
            )
        self._open.pop(optimizer, None)

    def _moved(self, optimizer: int) -> list[_Begun]:
        return [begun for begun in self._open.get(optimizer, ()) if begun.has_moved()]

    def forget(self, optimizers: Iterable[int]) -> None:
        """These optimizers are gone."""
        gone = set(optimizers)
        self._used = {key: used for key, used in self._used.items() if used.optimizer not in gone}
        for each in gone:
            self._open.pop(each, None)
            del self._updates[each]
