"""Parameters that had a gradient in updates of their optimizer, and those that had none."""

from __future__ import annotations

from collections.abc import Collection, Iterable, MutableMapping, Sequence

import torch
from torch.utils.weak import WeakTensorKeyDictionary

from tspec.runtime.live.identity import IdentitySet


class UpdatedWithGradient:
    """Follows which parameters of the optimizers have a gradient when they are updated.

    In most jobs all have one, and an update asks no more than that.
    """

    def __init__(self) -> None:
        self._had: IdentitySet[torch.Tensor] = IdentitySet()
        self._held: dict[int, int] = {}
        """Number of an optimizer -> how many parameters it held when all of them had had a gradient."""
        self._bare: dict[int, list[torch.Tensor]] = {}
        """Number of an optimizer whose update runs -> parameters that had no gradient when it began."""
        self._without: MutableMapping[torch.Tensor, int] = WeakTensorKeyDictionary()
        """Parameter -> its last updates in a row that found no gradient; none where there are none."""
        self._reached: MutableMapping[torch.Tensor, None] = WeakTensorKeyDictionary()
        """Those of `_without` to which a pass since the last update gave a gradient that no
        `zero_grad` has cleared.
        """

    def __contains__(self, parameter: torch.Tensor) -> bool:
        """True if the parameter had a gradient when an update began or ended."""
        return parameter in self._had

    def updates_without(self, parameters: Sequence[torch.Tensor]) -> list[int]:
        """How many of the last updates in a row found no gradient of each parameter that asks for one."""
        if not self._without:
            return [0] * len(parameters)
        return [self._without.get(each, 0) for each in parameters]

    def after_backward(self) -> None:
        """A backward pass ended."""
        if self._without:
            self._reached.update((each, None) for each in self._without if each.grad is not None)

    def cleared(self, parameters: Iterable[torch.Tensor]) -> None:
        """`zero_grad` clears the gradients of these."""
        if self._reached:
            for each in parameters:
                self._reached.pop(each, None)

    def before_update(self, optimizer: int, parameters: Sequence[torch.Tensor]) -> None:
        """An update of the optimizer begins."""
        self._add(optimizer, parameters)
        self._bare[optimizer] = [each for each in parameters if each.grad is None]

    def after_update(self, optimizer: int, parameters: Sequence[torch.Tensor]) -> None:
        """The update ended: a closure may have made gradients.

        A gradient that a pass made, and that is gone without `zero_grad`, was taken away by hand:
        the update leaves the parameter out on purpose.
        """
        self._add(optimizer, parameters)
        bare = self._bare.pop(optimizer, [])
        if not bare and not self._without:
            return
        asking = [each for each in bare if each.grad is None and each.requires_grad]
        still = [each for each in asking if each not in self._reached]
        counts = [self._without.get(each, 0) + 1 for each in still]
        for each in parameters:
            self._without.pop(each, None)
            self._reached.pop(each, None)
        self._without.update(zip(still, counts, strict=True))

    def forget(self, optimizers: Collection[int]) -> None:
        """These optimizers are gone."""
        for each in optimizers:
            self._held.pop(each, None)
            self._bare.pop(each, None)

    def _add(self, optimizer: int, parameters: Sequence[torch.Tensor]) -> None:
        if self._held.get(optimizer) == len(parameters):
            return
        for each in parameters:
            if each.grad is not None:
                self._had.add(each)
        if all(each in self._had for each in parameters):
            self._held[optimizer] = len(parameters)
