"""Labels of samples that the script mixes: whether they are mixed as the samples are (mixup, Zhang et al. 2018)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from tspec.runtime.live.convert import tensors_in
from tspec.runtime.live.features import local_part
from tspec.runtime.live.losses.graph import last_nodes, operation_of, saved
from tspec.runtime.live.losses.sums import weighted_terms

LOSSES = 16
"""The number of losses that are read. Later ones get their labels in the same way."""
LEAST, MOST = 8, 512
"""The least and the largest number of samples of a batch that is read."""
VALUES = 1024
"""The number of values of a sample that are read, spread over all of it."""
ALIKE = 0.999
"""The least cosine between what was added to a sample and its difference from another one, if that was mixed in."""
SHARE = 0.15
"""Smaller shares of another sample are not judged."""
WRONG = 0.2
"""The least difference of labels from those of the mixed samples."""
PART = 0.25
"""The part of the samples whose labels differ."""


class MixedSamples:
    """Compares the latest input of a model with the latest batch of a loader, for the first losses."""

    def __init__(self) -> None:
        self._batch: Sequence[torch.Tensor] = ()
        self._given: torch.Tensor | None = None
        self._losses = 0

    def fetches(self, batch: object) -> None:
        """A loader gave out a batch. It is kept until the loss: the script may replace its tensors by mixtures."""
        self._batch = tensors_in(batch) if self._losses < LOSSES else ()

    def gives(self, inputs: Iterable[object]) -> None:
        """The loop calls a model with tensors."""
        if self._losses < LOSSES and torch.is_grad_enabled():
            floats = [
                each
                for each in inputs
                if isinstance(each, torch.Tensor) and each.is_floating_point()
            ]
            self._given = floats[0] if floats and not floats[0].requires_grad else None

    @torch.no_grad()
    def mixes_labels_otherwise(self, losses: Any) -> bool | None:
        """True if samples `[n, ...]` were mixed in pairs, and the labels `[n]` of the loss are not those of the pairs with
        the same shares.

        None if no samples were mixed, and for losses without class labels.
        """
        batch, given = self._batch, self._given
        self._batch, self._given = (), None
        self._losses += 1
        labelled = _weighted_labels(losses) if given is not None else []
        read = None if given is None or not labelled else _read(batch, given)
        if read is None:
            return None
        samples, labels, mixed = read
        found = _pairs(samples, mixed)
        if found is None or any(each.shape != labels.shape for _, each in labelled):
            return None
        others, shares = found
        judged = shares >= SHARE
        if judged.double().mean() < PART:
            return None
        classes = int(torch.stack([labels, *(each for _, each in labelled)]).max()) + 1
        expected = _mixture([(1 - shares, labels), (shares, labels[others])], classes)
        total = sum(weight for weight, _ in labelled)
        ones = torch.ones_like(shares)
        actual = _mixture([(weight / total * ones, each) for weight, each in labelled], classes)
        wrong = ((expected - actual).abs().amax(1) > WRONG) & judged
        return bool(wrong.double().mean() >= PART)


def _weighted_labels(losses: Any) -> list[tuple[float, torch.Tensor]]:
    """The labels of each class loss that the loss is a sum of, with its weight."""
    ends = last_nodes(losses)
    if len(ends) != 1:
        return []
    terms = [
        (weight, saved(node, "target"))
        for node, weight in weighted_terms(ends[0], lambda node: operation_of(node) == "NllLoss")
        if node is not None and operation_of(node) == "NllLoss"
    ]
    return [
        (weight, labels)
        for weight, labels in terms
        if labels is not None and weight > 0 and bool((labels >= 0).all())
    ]


def _read(
    batch: Sequence[torch.Tensor], given: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None:
    """The samples of a batch, their labels, and what the model got, one row a sample. None if they do not fit."""
    samples = next((each for each in batch if each.is_floating_point()), None)
    labels = next((each for each in batch if each.dtype == torch.int64 and each.dim() == 1), None)
    if samples is None or labels is None or samples.shape != given.shape:
        return None
    parts = [local_part(each) for each in (samples, given)]
    if any(each is None for each in parts) or samples.device != given.device:
        return None
    if not LEAST <= len(labels) <= MOST or len(samples) != len(labels) or samples.dim() < 2:
        return None
    samples, given = (each.flatten(1) for each in parts if each is not None)
    stride = -(-samples.shape[1] // VALUES)
    return samples[:, ::stride].double(), labels, given[:, ::stride].double()


def _pairs(samples: torch.Tensor, mixed: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor] | None:
    """The other sample of each mixture and its share, `[n]` each; None if samples were not mixed in this way."""
    added = mixed - samples
    size = added.norm(dim=1)
    tells = size > 1e-6 * samples.norm(dim=1)
    if not bool(tells.any()):
        return None
    squares = samples.square().sum(1)
    products = samples @ samples.T
    between = (squares[:, None] + squares[None] - 2 * products).clamp(min=0).sqrt()
    along = added @ samples.T - (added * samples).sum(1, keepdim=True)
    cosines = along / (size[:, None] * between).clamp(min=1e-12)
    best, others = cosines.fill_diagonal_(-1).max(1)
    if bool((tells & (best < ALIKE)).any()):
        return None
    shares = size / between.gather(1, others[:, None]).squeeze(1)
    return others, torch.where(tells, shares, 0.0)


def _mixture(parts: Iterable[tuple[torch.Tensor, torch.Tensor]], classes: int) -> torch.Tensor:
    """The weight of each class for each sample, `[n, classes]`."""
    return torch.stack(
        [
            weights[:, None] * torch.nn.functional.one_hot(labels, classes)
            for weights, labels in parts
        ]
    ).sum(0)
