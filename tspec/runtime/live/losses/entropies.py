"""Finds entropies of distributions that a loss makes smaller."""

from __future__ import annotations

from typing import Any

import torch

from tspec.runtime.live.losses.graph import PASSES
from tspec.runtime.live.losses.marks import Mark
from tspec.runtime.live.losses.sums import ends

_ENTROPY: Mark[bool] = Mark("entropy")
"""Set at the node that computed an entropy."""


class Entropies:
    """The entropies in the first losses that have some."""

    def __init__(self) -> None:
        self._passes = 0
        self._marked = False
        """An entropy with a graph was computed since the last pass."""

    def is_entropy(self, result: Any) -> bool:
        """True if an entropy has a graph. It is marked there."""
        if not isinstance(result, torch.Tensor) or result.grad_fn is None:
            return False
        if self._passes < PASSES:
            _ENTROPY.put(result, True)
            self._marked = True
        return True

    def added_entropies(self, losses: Any) -> int | None:
        """The number of entropies that a loss adds, so that training makes them smaller. None
        without an entropy, and after the first losses with one.
        """
        if not self._marked:
            return None
        self._marked = False
        self._passes += 1
        return sum(_ENTROPY.on(node) and sign > 0 for node, sign in ends(losses, _ENTROPY.on))
