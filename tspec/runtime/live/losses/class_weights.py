"""Weights of classes in a class loss, beside how often each class occurs."""

from __future__ import annotations

from typing import Any

import torch

LEAST = 256
"""The least number of labels that show how often classes occur."""
APART, WEIGHED = 2.0, 1.5
"""The least factors between the most and the least frequent class, and between the largest and the smallest weight."""


class WeighedClasses:
    """Counts the labels of losses whose classes have weights."""

    def __init__(self) -> None:
        self._counts: torch.Tensor | None = None

    @torch.no_grad()
    def weight_of_frequent(self, target: Any, weight: Any, ignored: int) -> float | None:
        """The correlation between the logarithms of the weights `[classes]` and of the counts of the labels so far, from -1 to 1.

        Classes without a label or a weight are left out. None without weights, of probabilities, of fewer than
        256 labels, and where classes are about as frequent, or weigh about as much.
        """
        if not isinstance(weight, torch.Tensor) or not isinstance(target, torch.Tensor):
            return None
        if target.is_floating_point():
            return None
        labels = target[target != ignored].flatten()
        counted = torch.bincount(labels, minlength=len(weight)).cpu()
        if self._counts is None or self._counts.shape != counted.shape:
            self._counts = torch.zeros_like(counted)
        self._counts += counted
        weights = weight.detach().cpu().double()
        if self._counts.sum() < LEAST or len(weights) != len(self._counts):
            return None
        tells = (self._counts > 0) & (weights > 0)
        return _correlation(self._counts[tells].double(), weights[tells])


def _correlation(counts: torch.Tensor, weights: torch.Tensor) -> float | None:
    if len(counts) < 2:
        return None
    if counts.max() < APART * counts.min() or weights.max() < WEIGHED * weights.min():
        return None
    return float(torch.corrcoef(torch.stack([counts.log(), weights.log()]))[0, 1])
