"""Parameters that had a gradient in an update of their optimizer."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch

from tspec.runtime.live.identity import IdentitySet


class UpdatedWithGradient:
    """Follows, for each optimizer, which of its parameters have had a gradient."""

    def __init__(self) -> None:
        self._had: IdentitySet[torch.Tensor] = IdentitySet()
        self._held: dict[int, int] = {}
        """Number of an optimizer -> how many parameters it held when all of them had had a gradient."""

    def __contains__(self, parameter: torch.Tensor) -> bool:
        """True if the parameter had a gradient when an update began or ended."""
        return parameter in self._had

    def at_update(self, optimizer: int, parameters: Sequence[torch.Tensor]) -> None:
        """An update of the optimizer begins or ends."""
        if self._held.get(optimizer) == len(parameters):
            return
        for each in parameters:
            if each.grad is not None:
                self._had.add(each)
        if all(each in self._had for each in parameters):
            self._held[optimizer] = len(parameters)

    def forget(self, optimizers: Collection[int]) -> None:
        """These optimizers are gone."""
        for each in optimizers:
            self._held.pop(each, None)
