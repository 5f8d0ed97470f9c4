"""The samples that layers and models are given: whether they differ, and whether a model was
trained on them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import nn

from tspec.runtime.live.features import local_part
from tspec.runtime.live.identity import IdentityMap
from tspec.runtime.live.models import trains, unwrapped
from tspec.runtime.live.samples.rows import RowStore, row_numbers

CALLS = 512
"""The number of inputs that are checked, over all events. Later ones come from the same places."""


class DataOfLayers:
    """Inputs of layers that no gradient reaches: data, and no activations."""

    def __init__(self) -> None:
        self._looked_at = 0

    def data_differ(self, value: torch.Tensor) -> bool | None:
        """True if the rows of `[samples, ...]` differ.

        None for activations, zeros, a single sample, without a graph, and after the first inputs.
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


class KnownSamples:
    """Remembers the samples that each model was trained on, and counts them in evaluations."""

    def __init__(self, is_root: Callable[[nn.Module], bool]) -> None:
        self._is_root = is_root
        self._seen: IdentityMap[nn.Module, RowStore] = IdentityMap(RowStore)

    def known_samples(self, module: nn.Module, inputs: Sequence[object]) -> float | None:
        """The part of the first `[samples, ...]` input of an evaluation that the model was given in training.

        None of training passes, which are kept, of parts of a model, and where it was not trained on anything yet.
        """
        model = unwrapped(module)
        if not self._is_root(model):
            return None
        learns = torch.is_grad_enabled()
        if learns is not trains(model):
            return None
        known = self._seen.of(model)
        if known.is_full if learns else not len(known):
            return None
        rows = row_numbers(inputs)
        if rows is None:
            return None
        if not learns:
            return float(known.known(rows).double().mean())
        known.add(rows)
        return None
