"""Evaluations of held-out samples that no loader gives: a tensor that the loop passes to the model again and again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from tspec.runtime.live.identity import IdentityMap
from tspec.runtime.live.module_tree import trains, unwrapped
from tspec.runtime.live.samples.rows import RowStore, row_numbers

EVALUATED = 64
"""The number of evaluation passes that are checked, for each model."""
AGAIN = 0.9
"""The least fraction of the training samples that comes again in each epoch, unless samples are
drawn or changed anew.
"""
STRAYS = 0.1
"""The largest fraction of held-out samples that may be in the training data too, as equal rows of a
table.
"""


@dataclass(slots=True)
class _EvaluatedSamples:
    """The samples that one model was given."""

    trained: RowStore = field(default_factory=RowStore)
    """Samples trained on before the latest evaluation."""
    since: RowStore = field(default_factory=RowStore)
    """Samples trained on since the latest evaluation began."""
    passes: int = 0
    """The number of training passes since the latest evaluation began."""
    epoch_ended: bool = False
    """Several passes precede the latest evaluation, and their samples had been trained on before.
    """
    now: RowStore = field(default_factory=RowStore)
    """Samples of the latest evaluation."""
    before: RowStore = field(default_factory=RowStore)
    """Samples of the evaluation before the latest."""
    by_mode: tuple[RowStore, RowStore] = field(default_factory=lambda: (RowStore(), RowStore()))
    """Samples of all evaluations: those in evaluation mode, those in training mode."""
    left: int = EVALUATED

    def learns(self, rows: torch.Tensor) -> None:
        """A pass of training."""
        self.since.add(rows)
        self.passes += 1
        if self.since.is_full or self.trained.is_full:
            self.left = 0

    def evaluates(self, rows: torch.Tensor, in_training: bool) -> bool:
        """A pass without a graph. True if its samples are held out and are evaluated repeatedly."""
        if self.passes:
            self._begin_evaluation()
        repeats = _part(self.now, rows) > 0.5
        again = bool(self.before.known(rows).all())
        unknown = _part(self.trained, rows) <= STRAYS
        two_ways = bool(self.by_mode[not in_training].known(rows).any())
        self.now.add(rows)
        self.by_mode[in_training].add(rows)
        self.left = 0 if repeats else self.left - 1
        return self.epoch_ended and again and unknown and not (repeats or two_ways)

    def _begin_evaluation(self) -> None:
        trained = self.since.kept()
        if trained is None:
            self.epoch_ended = False
        else:
            self.epoch_ended = self.passes > 1 and _part(self.trained, trained) >= AGAIN
            self.trained.add(trained)
        self.since, self.passes = RowStore(), 0
        self.before, self.now = self.now, RowStore()


def _part(store: RowStore, rows: torch.Tensor) -> float:
    return float(store.known(rows).double().mean())


class HeldOutSamples:
    """Finds models that evaluate held-out samples in training mode.

    Programs that do so on purpose look different: they score samples before they train on them,
    score the same ones several times in a row (Monte Carlo), in both modes in turn (adapted
    statistics), draw samples anew (prompts of a generator, states of an environment), or have
    nothing but a training pass in between.
    """

    def __init__(self, is_given_data: Callable[[nn.Module], bool]) -> None:
        self._is_given_data = is_given_data
        self._given: IdentityMap[nn.Module, _EvaluatedSamples] = IdentityMap(_EvaluatedSamples)

    def answers_as_in_training(self, module: nn.Module, inputs: Sequence[object]) -> bool | None:
        """True if dropout or a batch norm of a model is in training mode while held-out samples are
        evaluated.

        The samples are the rows of the first `[samples, ...]` input. None for other passes and for
        parts that other modules call.
        """
        model = unwrapped(module)
        if not self._is_given_data(model):
            return None
        given = self._given.of(model)
        if not given.left:
            return None
        rows = row_numbers(inputs)
        if rows is None:
            return None
        in_training = trains(model)
        if torch.is_grad_enabled():
            if in_training:
                given.learns(rows)
            return None
        if not given.evaluates(rows, in_training):
            return None
        return in_training and any(map(_answers_otherwise, model.modules()))


def _answers_otherwise(module: nn.Module) -> bool:
    """True if a layer is in training mode and its output differs there from that in evaluation
    mode.
    """
    if not trains(module):
        return False
    if isinstance(module, _DropoutNd):
        return bool(module.p > 0)
    if isinstance(module, _BatchNorm):
        return bool(module.track_running_stats)
    if isinstance(module, nn.MultiheadAttention):
        return bool(module.dropout > 0)
    return isinstance(module, nn.RNNBase) and bool(module.dropout) and module.num_layers > 1
