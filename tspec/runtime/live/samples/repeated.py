"""Evaluations on samples that are the same each time and that nothing is trained on, whoever makes
the batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import nn

from tspec.runtime.live.identity import IdentityMap
from tspec.runtime.live.module_tree import unwrapped
from tspec.runtime.live.samples.rows import RowStore, row_numbers

PASSES = 256
"""The number of passes without a graph that are looked at, for each model."""
TRAINED = 4096
"""The number of training passes whose samples are kept. Later ones have the same samples, or new ones."""


@dataclass(slots=True)
class _SampledModel:
    """The passes of one model without a graph, as far as they are looked at."""

    samples: RowStore = field(default_factory=RowStore)
    """Those of its first evaluation."""
    passes: int = 0
    evaluations: int = 0
    updates: int = -1
    """How many updates the job had made at the latest pass."""
    other: bool = False
    """It was given other samples later, samples of the training, or those of another model."""


class RepeatedEvaluations:
    """Counts the evaluations of each model that is given the same samples in all of them.

    A teacher and a reference are given samples of the training, a target network is given new ones,
    and a baseline is given those of the model with which it is compared. None of them is counted.
    """

    def __init__(self) -> None:
        self._trained = RowStore()
        self._passes = 0
        self._evaluated: IdentityMap[nn.Module, _SampledModel] = IdentityMap(_SampledModel)

    def gives(self, module: nn.Module, inputs: Sequence[object], updates: int) -> None:
        """A model is given samples, `[samples, ...]`. `updates` counts those of the job up to now."""
        if torch.is_grad_enabled():
            self._learns(inputs)
            return
        model = unwrapped(module)
        known = self._evaluated.of(model)
        if known.other or known.passes >= PASSES or self._trained.is_full:
            return
        rows = row_numbers(inputs)
        if rows is not None:
            known.passes += 1
            self._evaluates(model, known, rows, updates)

    def evaluations(self, module: nn.Module) -> int:
        """How many evaluations a model has made, with updates between any two; 0 of models that are
        not counted.
        """
        known = self._evaluated.of(unwrapped(module))
        return 0 if known.other else known.evaluations

    def _learns(self, inputs: Sequence[object]) -> None:
        if self._passes >= TRAINED or self._trained.is_full:
            return
        rows = row_numbers(inputs)
        if rows is not None:
            self._passes += 1
            self._trained.add(rows)

    def _evaluates(
        self, model: nn.Module, known: _SampledModel, rows: torch.Tensor, updates: int
    ) -> None:
        begins = updates > known.updates
        if known.evaluations == 0 or (known.evaluations == 1 and not begins):
            known.samples.add(rows)
        elif not bool(known.samples.known(rows).all()):
            known.other = True
        if bool(self._trained.known(rows).any()):
            known.other = True
        for other, evaluated in self._evaluated.alive():
            given = evaluated.samples
            if other is not model and len(given) and bool(given.known(rows).any()):
                known.other = evaluated.other = True
        known.evaluations += begins
        known.updates = updates
