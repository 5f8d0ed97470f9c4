"""Counts the backward passes whose gradients were cleared before an update used them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch

from tspec.runtime.live.features import local_part

LOOKED_AT = 20
"""The number of updates of an optimizer that are checked. Later ones are made in the same way."""
_SAMPLED = 8
"""The number of elements of a parameter that are compared between two passes."""

_ROUNDING = 1e-4
"""The largest difference of cosine similarity from 1 that rounding causes when gradients are
multiplied.
"""


@dataclass(slots=True)
class _UpdatePasses:
    """The passes that an optimizer's next update is made of."""

    updates: int = 0
    """The optimizer's updates so far."""
    passes: int = 0
    """Passes since the last of them."""
    several: bool = False
    """There was more than one pass before the last of them."""
    left: dict[int, torch.Tensor] = field(default_factory=dict)
    """Id -> a parameter that had a gradient when the last pass ended and was not cleared by
    `zero_grad` since.
    """
    kept: bool = True
    """The last pass left no gradient, or is known to be dropped."""
    before: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list)
    """Parameters, and elements of theirs where the last pass ended."""
    dropped: int = 0
    """Passes whose gradients are gone, although no parameter moved."""
    grads: list[tuple[torch.Tensor, torch.Tensor]] = field(default_factory=list)
    """If there are some, parameters and elements of their gradients where the last pass ended."""
    of_update: int | None = 0
    """The same of the latest update; None if it is not among those that are checked."""


class DroppedPasses:
    """Follows the gradients of each backward pass up to the next pass of the same update.

    Parameters that moved in between have used their gradients, as in sharpness-aware minimization
    or an inner loop. If an update's gradients are neither those of the last pass nor a multiple of
    them (clipping), the script kept and used the gradients of other passes. Values are read only if
    an update has several passes.
    """

    def __init__(self) -> None:
        self._optimizers: dict[int, _UpdatePasses] = {}
        """Number of the optimizer, as long as it exists -> its passes."""

    def of(self, optimizer: int) -> int | None:
        """The number of dropped passes before the optimizer's latest update; None if it is not among
        those that are checked.
        """
        known = self._optimizers.get(optimizer)
        return 0 if known is None else known.of_update

    def is_due(self, optimizer: int) -> bool:
        """True if the optimizer's next update is checked."""
        known = self._optimizers.get(optimizer)
        return known is None or known.updates < LOOKED_AT

    def before_backward(self) -> None:
        """A backward pass begins."""
        for known in self._optimizers.values():
            if known.kept or any(each.grad is not None for each in known.left.values()):
                continue
            known.kept = True
            known.dropped += bool(known.before) and not _moved(known.before)

    def after_backward(self, optimizer: int, parameters: Sequence[torch.Tensor]) -> None:
        """A backward pass ended. The parameters are those of an optimizer whose next update is
        checked.
        """
        known = self._optimizers.setdefault(optimizer, _UpdatePasses())
        known.passes += 1
        known.left = {id(each): each for each in parameters if each.grad is not None}
        known.kept = not known.left
        known.before = (
            [(each, _sample(each)) for each in known.left.values()] if known.several else []
        )
        dropped = known.left.values() if known.dropped else ()
        known.grads = [(each, _sample(each.grad)) for each in dropped]

    def cleared(self, parameters: Iterable[torch.Tensor]) -> None:
        """The gradients of these are cleared."""
        ids = set(map(id, parameters)) if self._optimizers else set()
        for known in self._optimizers.values():
            if not known.kept:
                known.left = {key: each for key, each in known.left.items() if key not in ids}

    def before_update(self, optimizer: int) -> None:
        """An update begins, from the gradients of the passes since the last one."""
        known = self._optimizers.get(optimizer)
        if known is None:
            return
        if known.updates >= LOOKED_AT:
            known.of_update = None
        else:
            known.of_update = known.dropped if _are_multiples(known.grads) else 0
        known.several = known.passes > 1
        known.updates += 1
        self._begin(known)

    def after_update(self, optimizer: int) -> None:
        """An update is over. Passes within it, such as a closure's, do not count for the next one."""
        known = self._optimizers.get(optimizer)
        if known is not None:
            self._begin(known)

    def forget(self, optimizers: Iterable[int]) -> None:
        """These optimizers are gone."""
        for each in optimizers:
            self._optimizers.pop(each, None)

    @staticmethod
    def _begin(known: _UpdatePasses) -> None:
        known.passes = known.dropped = 0
        known.left, known.kept, known.before, known.grads = {}, True, [], []


def _sample(tensor: torch.Tensor | None) -> torch.Tensor:
    """The first elements of the part that this rank holds: `[n]`, empty if there is none."""
    part = None if tensor is None else local_part(tensor)
    return torch.empty(0) if part is None else part.reshape(-1)[:_SAMPLED].clone()


def _moved(before: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> bool:
    """True if one of these parameters has changed."""
    return any(not torch.equal(_sample(each), was) for each, was in before)


def _are_multiples(grads: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> bool:
    """True if the gradients of these parameters are unchanged, except for a common factor."""
    pairs = [(was, _sample(each.grad)) for each, was in grads]
    if not pairs or any(was.shape != now.shape for was, now in pairs):
        return False
    was, now = (
        torch.cat([each.double().cpu() for each in side]) for side in zip(*pairs, strict=True)
    )
    return bool(torch.cosine_similarity(was, now, dim=0) >= 1 - _ROUNDING)
