"""The scale of what a model is evaluated on, compared with that of what it was trained on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import nn

from tspec.runtime.live.features import local_part
from tspec.runtime.live.identity import IdentityMap
from tspec.runtime.live.module_tree import trains, unwrapped

PASSES = 64
"""The number of passes of training, and of evaluation, whose inputs are read, for each model."""
ENOUGH = 8
"""The least number of training passes that show the scale."""
SHAPES = 64
"""The number of shapes of samples that are kept."""
LEAST = 64
"""Inputs of fewer numbers scatter."""


@dataclass(slots=True)
class _Trained:
    """Standard deviations of the inputs of training passes."""

    passes: int = 0
    lowest: float = math.inf
    highest: float = 0.0

    def learns(self, deviation: float) -> None:
        """A pass of training."""
        self.passes += 1
        self.lowest, self.highest = min(self.lowest, deviation), max(self.highest, deviation)


@dataclass(slots=True)
class _Evaluated:
    """The evaluations of one model."""

    passes: int = 0
    evaluations: int = 0
    trainings: int = 0
    """The number of training passes of the job before the latest evaluation pass."""
    nearest: float = math.inf
    """The smallest factor between an evaluated input and the inputs of the training."""

    def evaluates(self, deviation: float, trained: _Trained, trainings: int) -> float | None:
        """A pass of an evaluation: the smallest factor of all such passes, from the second
        evaluation on.
        """
        self.passes += 1
        self.evaluations += trainings > self.trainings
        self.trainings = trainings
        factor = max(trained.lowest / deviation, deviation / trained.highest, 1.0)
        self.nearest = min(self.nearest, factor)
        return self.nearest if self.evaluations > 1 else None


class InputScales:
    """Remembers how large the inputs of models are in training.

    Models of one class whose samples have one shape count as one: an average of the weights is only
    evaluated.
    """

    def __init__(self, is_given_data: Callable[[nn.Module], bool]) -> None:
        self._is_given_data = is_given_data
        self._trained: dict[tuple[type, tuple[int, ...]], _Trained] = {}
        self._evaluated: IdentityMap[nn.Module, _Evaluated] = IdentityMap(_Evaluated)
        self._trainings = 0

    def scale_of_inputs(self, module: nn.Module, inputs: Sequence[object]) -> float | None:
        """By what factor the standard deviation of the first floating input lies outside of the
        range of the training passes, in the evaluation pass that comes nearest; 1 within it.

        None of training passes, which are kept, of parts that other modules call, and in the first
        evaluation.
        """
        model = unwrapped(module)
        learns = torch.is_grad_enabled()
        if learns is not trains(model) or not self._is_given_data(model):
            return None
        self._trainings += learns
        given = _data(inputs)
        if given is None:
            return None
        key = (type(model), tuple(given.shape[1:]))
        if learns:
            self._learns(key, given)
            return None
        trained, evaluated = self._trained.get(key), self._evaluated.of(model)
        if trained is None or trained.passes < ENOUGH or evaluated.passes >= PASSES:
            return None
        deviation = _deviation(given)
        if deviation is None:
            return None
        return evaluated.evaluates(deviation, trained, self._trainings)

    def _learns(self, key: tuple[type, tuple[int, ...]], given: torch.Tensor) -> None:
        if key not in self._trained and len(self._trained) >= SHAPES:
            return
        trained = self._trained.setdefault(key, _Trained())
        deviation = _deviation(given) if trained.passes < PASSES else None
        if deviation is not None:
            trained.learns(deviation)


def _deviation(given: torch.Tensor) -> float | None:
    """The standard deviation; None if it is zero or not finite."""
    deviation = float(given.detach().double().std())
    return deviation if 0 < deviation < math.inf else None


def _data(inputs: Sequence[object]) -> torch.Tensor | None:
    """The first floating input, unless it has a graph or cannot be read."""
    for given in inputs:
        if isinstance(given, torch.Tensor) and given.is_floating_point():
            part = None if given.requires_grad or given.dim() < 2 else local_part(given)
            return None if part is None or part.numel() < LEAST else part
    return None
