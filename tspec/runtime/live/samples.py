"""Whether what a layer is given says something of each sample."""

from __future__ import annotations

import torch

from tspec.runtime.live.features import local_part

CALLS = 512
"""So many inputs are looked at, of all events: later ones come from the same places."""


class DataOfLayers:
    """Inputs of layers that no gradient reaches: data, and no activations."""

    def __init__(self) -> None:
        self._looked_at = 0

    def data_differ(self, value: torch.Tensor) -> bool | None:
        """Whether the rows of `[samples, ...]` differ.

        None of activations, zeros, a single sample, without a graph and after the first inputs.
        """
        if not isinstance(value, torch.Tensor) or value.requires_grad:
            return None
        if self._looked_at >= CALLS or not torch.is_grad_enabled():
            return None
        part = local_part(value)
        if part is None or part.dim() < 1 or part.shape[0] < 2:
            return None
        self._looked_at += 1
        differ = bool((part != part[:1]).any())
        return differ if differ or bool(part[0].any()) else None
