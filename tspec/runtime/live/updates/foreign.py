"""Gradients that an update uses beside its own, and that belong to the update of another optimizer.

The discriminator of a GAN learns from samples that were not detached, so the pass of its loss reaches the
generator too. If the generator's gradients are not cleared after that, its update uses those of both losses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch

LOOKED_AT = 20
"""The number of updates of an optimizer that are checked. Later ones are made in the same way."""


@dataclass(slots=True)
class _Passes:
    """The backward passes that have reached the parameters of one optimizer. A pass is known by its number."""

    updates: int = 0
    """The optimizer's updates so far."""
    held: frozenset[int] = frozenset()
    """The ids of its parameters."""
    begun: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Id of a parameter -> the id and the version of its gradient where a pass begins."""
    reached: list[int] = field(default_factory=list)
    """Those since its gradients were cleared."""
    used: frozenset[int] = frozenset()
    """Those of its last update."""
    discards: bool = False
    """Gradients were cleared that no update had used, so it does without some."""
    of_update: int | None = 0
    """What `ForeignGradients.of` says of its last update."""

    def clear(self) -> None:
        """Its gradients are gone."""
        self.discards = self.discards or bool(self.reached and self.reached[-1] not in self.used)
        self.reached = []


class ForeignGradients:
    """In a job of several optimizers, notes for each one the passes that gave its parameters a gradient.

    A pass is foreign to an update if another optimizer used it for an update before the last pass of this one.
    The last pass must reach the other optimizer too, and that optimizer clears the gradient unused. Optimizers
    that accumulate over different numbers of passes use all gradients, so they have no foreign passes.
    """

    def __init__(self) -> None:
        self._optimizers: dict[int, _Passes] = {}
        """Number of the optimizer, as long as it exists -> its passes."""
        self._passes = 0

    def is_due(self, optimizer: int) -> bool:
        """True if the optimizer's next update is checked."""
        known = self._optimizers.get(optimizer)
        return known is None or known.updates < LOOKED_AT

    def before_backward(self, optimizer: int, parameters: Sequence[torch.Tensor]) -> None:
        """A backward pass begins. The parameters are those of an optimizer whose next update is checked."""
        known = self._optimizers.setdefault(optimizer, _Passes())
        known.held = frozenset(map(id, parameters))
        known.begun = _gradients(parameters)
        if not known.begun:
            known.clear()

    def after_backward(self, parameters: Iterable[tuple[int, Sequence[torch.Tensor]]]) -> None:
        """The pass is over. `parameters`: the numbers of the optimizers that it began with, and what they hold."""
        self._passes += 1
        for optimizer, held in parameters:
            known = self._optimizers.get(optimizer)
            if known is not None and _gradients(held) != known.begun:
                known.reached.append(self._passes)

    def cleared(self, parameters: Iterable[torch.Tensor]) -> None:
        """The gradients of these are cleared."""
        ids = set(map(id, parameters)) if self._optimizers else set()
        for known in self._optimizers.values():
            if known.held and known.held <= ids:
                known.clear()

    def before_update(self, optimizer: int) -> None:
        """An update begins, from the gradients of the passes that have reached it."""
        known = self._optimizers.get(optimizer)
        if known is None:
            return
        others = [each for each in self._optimizers.values() if each is not known and each.discards]
        *earlier, last = known.reached or [0]
        foreign = sum(
            any(each in other.used and last in other.reached for other in others)
            for each in earlier
        )
        known.of_update = foreign if known.updates < LOOKED_AT else None
        known.used = frozenset(known.reached)
        known.updates += 1

    def of(self, optimizer: int) -> int | None:
        """The number of foreign passes whose gradients the optimizer's latest update used; None if it is not
        among those that are checked.
        """
        known = self._optimizers.get(optimizer)
        return 0 if known is None else known.of_update

    def forget(self, optimizers: Iterable[int]) -> None:
        """These optimizers are gone."""
        for each in optimizers:
            self._optimizers.pop(each, None)


def _gradients(parameters: Iterable[torch.Tensor]) -> dict[int, tuple[int, int]]:
    """Id of each parameter with a gradient -> the id and the version of the gradient."""
    return {
        id(each): (id(each.grad), each.grad._version)
        for each in parameters
        if each.grad is not None
    }
