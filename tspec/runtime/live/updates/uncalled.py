"""Models that the loop has not called when their parameters change, such as an average of the weights
that is evaluated after the last step.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import nn

from tspec.runtime.live.identity import IdentityMap
from tspec.runtime.live.module_tree import table

UPDATES = 20
"""The number of updates of all optimizers in which such models are looked for."""


class UncalledModels:
    """Finds modules of no known model whose parameters were written to between two updates."""

    def __init__(self) -> None:
        self._updates = 0
        self._versions: IdentityMap[nn.Module, list[int]] = IdentityMap(list)
        """A module -> the version of its own parameters when the last update began; none before."""

    def is_due(self) -> bool:
        """Count an update that begins; True if models are looked for in it."""
        self._updates += 1
        if self._updates == UPDATES + 1:
            self._versions = IdentityMap(list)
        return self._updates <= UPDATES

    def changed(self, modules: Iterable[nn.Module]) -> list[torch.Tensor]:
        """One parameter of each of these modules whose parameters were written to since the last update."""
        found = []
        for module in modules:
            own = [each for each in table(module, "_parameters").values() if each is not None]
            if not own or any(each.is_inference() for each in own):
                continue
            last, now = self._versions.of(module), [sum(each._version for each in own)]
            if last and last != now:
                found.append(own[0])
            last[:] = now
        return found
