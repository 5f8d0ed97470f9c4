"""Evaluations on held-out batches, counted for each model that answers no training batch."""

from __future__ import annotations

import weakref
from dataclasses import dataclass

from torch import nn

from tspec.runtime.live.identity import IdentityMap
from tspec.runtime.live.module_tree import unwrapped


@dataclass(slots=True)
class _Answers:
    """The passes of one model without a graph."""

    evaluations: int = 0
    updates: int = -1
    """How many updates the job had made at the latest one."""
    other: bool = False
    """It answered a training batch, or shared a batch with another model."""


class HeldOutEvaluations:
    """Counts the evaluations of each model.

    A model that is asked about training batches is a teacher, a reference or a target network. One
    that answers the same batch as another model may be compared with it. Neither is counted.
    """

    def __init__(self) -> None:
        self._answers: IdentityMap[nn.Module, _Answers] = IdentityMap(_Answers)
        self._batch = -1
        self._answered: weakref.ref[nn.Module] | None = None
        """The model that answered the latest batch."""

    def answers(self, module: nn.Module, batch: int, held_out: bool, updates: int) -> None:
        """A model gets a batch without a graph. `updates` counts those of the job up to now."""
        model = unwrapped(module)
        answers = self._answers.of(model)
        before = None if batch != self._batch or self._answered is None else self._answered()
        if before is not None and before is not model:
            answers.other = self._answers.of(before).other = True
        self._batch, self._answered = batch, weakref.ref(model)
        answers.other = answers.other or not held_out
        if updates > answers.updates:
            answers.evaluations, answers.updates = answers.evaluations + 1, updates

    def held_out_evaluations(self, module: nn.Module) -> int:
        """How many evaluations a model has answered, with updates between any two; 0 of models that
        are not counted.
        """
        answers = self._answers.of(unwrapped(module))
        return 0 if answers.other else answers.evaluations
