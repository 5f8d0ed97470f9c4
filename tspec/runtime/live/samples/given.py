"""The samples that layers and models are given: whether they differ, and whether a model was
trained on them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import nn

from tspec.runtime.live.features import local_part
from tspec.runtime.live.identity import IdentityMap
from tspec.runtime.live.module_tree import trains, unwrapped
from tspec.runtime.live.samples.rows import RowStore, row_numbers

CALLS = 512
"""The number of inputs that are checked, over all events. Later ones come from the same places."""
FULL_BATCHES = 4
"""If so many passes get the same samples, all passes do: the model is trained on all its data at once."""


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


@dataclass(slots=True)
class _TrainingSamples:
    """The samples that a model was trained on."""

    rows: RowStore = field(default_factory=RowStore)
    first: torch.Tensor | None = None
    """The samples of its first pass, until another pass has others."""
    passes: int = 0
    in_batches: bool = False
    """Two passes had different samples."""

    @property
    def is_known(self) -> bool:
        """Further passes tell nothing more."""
        return self.rows.is_full and (self.in_batches or self.passes >= FULL_BATCHES)

    def add(self, rows: torch.Tensor) -> None:
        """The model gets samples, in a pass with a graph."""
        if not self.in_batches and self.passes < FULL_BATCHES:
            self.passes += 1
            self.in_batches = self.first is not None and not torch.equal(self.first, rows)
            self.first = None if self.in_batches else rows
        self.rows.add(rows)


class KnownSamples:
    """Remembers the samples that each model was trained on, and counts them in evaluations.

    A model that gets all its data in each pass is left out: a mask may tell which samples of a
    graph are trained on.
    """

    def __init__(self, is_root: Callable[[nn.Module], bool]) -> None:
        self._is_root = is_root
        self._trained: IdentityMap[nn.Module, _TrainingSamples] = IdentityMap(_TrainingSamples)

    def known_samples(self, module: nn.Module, inputs: Sequence[object]) -> float | None:
        """The part of the first `[samples, ...]` input of an evaluation that the model was given in training.

        None of training passes, which are kept, of parts of a model, and where it was not trained on two different batches yet.
        """
        model = unwrapped(module)
        if not self._is_root(model):
            return None
        learns = torch.is_grad_enabled()
        if learns is not trains(model):
            return None
        trained = self._trained.of(model)
        if trained.is_known if learns else not trained.in_batches:
            return None
        rows = row_numbers(inputs)
        if rows is None:
            return None
        if not learns:
            return float(trained.rows.known(rows).double().mean())
        trained.add(rows)
        return None
