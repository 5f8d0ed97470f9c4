"""Finds losses that are no better than the loss of the best constant answer, which ignores the inputs.

No constant has a smaller loss on a batch than these: the entropy of its labels is the least cross
entropy of one distribution, and the variance of its targets is the least mean squared error of one
number. So a model with a smaller loss has used its inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from tspec.runtime.live.losses.picked import picked_loss

LEAST = 16
"""The smallest number of targets that is enough."""
MOST = 128
"""The largest number of labels. With the words of a text, the first steps are not enough to learn how often
each occurs.
"""
EVERY = 11
"""One in so many losses is read. Few steps have eleven losses of one shape, of which one would be read always."""

BELOW = 0.99
"""A loss is below another one if it is so by more than a hundredth, which rounding may cost."""
FALLING = 0.9
"""A loss far above the constant's that has fallen by a tenth is on its way there."""


@dataclass(slots=True)
class _Series:
    """The losses of predictions of one shape."""

    count: int = 0
    unbeaten: int = 0
    """The number of read losses since one was below the constant's, or had fallen towards it."""
    fallen_to: float = 0.0
    """The loss over the constant's at the first look, and when it last had fallen or was below."""

    def take(self, loss: torch.Tensor, guess: float) -> None:
        """Compare a loss with that of the best constant. Nothing is counted if all targets are the same."""
        if guess > 0:
            ratio = float(loss.detach()) / guess
            fell = ratio < max(BELOW, FALLING * self.fallen_to)
            self.unbeaten = 0 if fell else self.unbeaten + 1
            if fell or not self.fallen_to:
                self.fallen_to = ratio


class Guesses:
    """Compares some losses of each kind and shape with the best constant answer."""

    def __init__(self) -> None:
        self._series: dict[tuple[object, ...], _Series] = {}

    @property
    def functions(self) -> Mapping[str, Callable[..., int]]:
        """What the fields of loss functions call, by name."""
        return {
            "unbeaten_classes": self.unbeaten_classes,
            "unbeaten_logits": self.unbeaten_logits,
            "unbeaten_squares": self.unbeaten_squares,
            "unbeaten_picks": self.unbeaten_picks,
        }

    def unbeaten_classes(
        self, input: Any, target: Any, loss: Any, weight: Any, ignore_index: int, reduction: str
    ) -> int:
        """Counts cross entropies in a row that are not below the entropy of the labels, each label
        counted with the weight of its class.

        This and the other functions return the largest count of all kinds and shapes.
        """
        series = self._read("classes", input, target, loss, None, reduction)
        if series is not None and not target.is_floating_point():
            guess = _best_guess(target[target != ignore_index], weight)
            if guess is not None:
                series.take(loss, guess)
        return self._longest()

    def unbeaten_picks(self, losses: Any) -> int:
        """The same of cross entropies by hand, in which labels pick from log-probabilities."""
        series = self._series.setdefault(("picks",), _Series())
        series.count += 1
        found = None if series.count % EVERY else picked_loss(losses)
        if found is not None:
            loss, labels = found
            guess = _best_guess(labels, None)
            if guess is not None and len(labels) >= LEAST:
                series.take(loss, guess)
        return self._longest()

    def unbeaten_logits(
        self, input: Any, target: Any, loss: Any, weight: Any, pos_weight: Any, reduction: str
    ) -> int:
        """The same of the entropy of one probability for all elements."""
        series = self._read("logits", input, target, loss, weight, reduction)
        if series is not None and pos_weight is None:
            mean = target.double().mean()
            series.take(loss, _entropy(torch.stack((mean, 1 - mean))))
        return self._longest()

    def unbeaten_squares(
        self, input: Any, target: Any, loss: Any, weight: Any, reduction: str
    ) -> int:
        """The same of squared errors and the variance of the targets."""
        series = self._read("squares", input, target, loss, weight, reduction)
        if series is not None:
            series.take(loss, float(target.double().var(correction=0)))
        return self._longest()

    def _longest(self) -> int:
        return max((each.unbeaten for each in self._series.values()), default=0)

    def _read(
        self, kind: str, input: Any, target: Any, loss: Any, weight: Any, reduction: str
    ) -> _Series | None:
        """The series of a loss that is read now; None of others."""
        if weight is not None or not getattr(loss, "requires_grad", False) or reduction != "mean":
            return None
        if type(target) is not torch.Tensor or target.numel() < LEAST or target.requires_grad:
            return None
        series = self._series.setdefault((kind, *input.shape[1:]), _Series())
        series.count += 1
        return None if series.count % EVERY else series


def _best_guess(labels: torch.Tensor, weight: torch.Tensor | None) -> float | None:
    """The entropy of labels, each counted with the weight of its class; None of too many kinds."""
    kinds, counts = torch.unique(labels, return_counts=True)
    if len(counts) > MOST or counts.sum() < 2 * len(counts):
        return None
    counted = counts.double() if weight is None else counts * weight[kinds].double()
    return _entropy(counted / counted.sum())


def _entropy(probabilities: torch.Tensor) -> float:
    return float(torch.special.entr(probabilities).sum())
