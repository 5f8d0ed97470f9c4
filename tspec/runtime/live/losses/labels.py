"""Reads the labels of class losses, and the logits that they pick."""

from __future__ import annotations

from typing import Any

import torch

from tspec.runtime.live.losses.graph import (
    KEEPS,
    RESHAPES,
    first_input,
    nodes,
    operation_of,
    preceding,
)

LOSSES = 16
"""The number of losses with a graph that are read. Later ones get their labels in the same way."""
_CLASS_LOSSES = ("NllLoss", "NllLoss2D")
_LEAST = 8
"""Fewer labels, or logits, may be alike by chance."""
_CLASSES = 64
"""The number of classes, spread over all, by which the logits of two places are compared."""
_MASKED = -9_999
"""Logits below stand for minus infinity: a mask puts them there."""
_ALIKE = 1e-4
"""Logits that differ by less than this part of the range of all logits are the same number. In
low precision they are if they differ by less than its epsilon.
"""
_MOST = 1 << 24
"""Logits of more elements are not compared: a copy of them may not fit beside the job."""
_TWICE = 1e-6
"""As `_ALIKE`, of logits of one sample: they are of one pair of vectors, multiplied in another order."""


@torch.no_grad()
def counted_kinds(target: Any, ignored: int) -> int | None:
    """The number of different labels beside those that are ignored.

    None if none is ignored, if fewer than 8 count, if all are 0 or all are 1, as where nothing is
    to be found, and of probabilities.
    """
    if type(target) is not torch.Tensor or target.is_floating_point():
        return None
    counted = target[target != ignored]
    if counted.numel() == target.numel() or counted.numel() < _LEAST:
        return None
    kinds = torch.unique(counted)
    return None if len(kinds) == 1 and int(kinds[0]) in (0, 1) else len(kinds)


@torch.no_grad()
def right_logits_alike(logits: Any, target: Any, ignored: int) -> bool | None:
    """True if all rows have the same logit at their own label, and other logits vary.

    `logits` are `[n, classes]`, `target` is `[n]`. None of other shapes, of fewer than 8 rows, of
    more than 16 million logits, if hardly any logits vary, and if all rows are the same: their inputs are.
    """
    read = _counted_rows(logits, target, ignored)
    if read is None:
        return None
    rows, labels, span = read
    right = rows.gather(1, labels[:, None])
    if not right.isfinite().all() or torch.equal(rows, rows[:1].expand_as(rows)):
        return None
    return float(right.max() - right.min()) <= _alike(logits) * span


@torch.no_grad()
def right_logits_twice(logits: Any, target: Any, ignored: int) -> bool | None:
    """True if in all rows another class has the logit of the label, to round-off.

    None as of `right_logits_alike`, and of logits with few digits, which are equal by chance.
    """
    read = _counted_rows(logits, target, ignored)
    if read is None:
        return None
    rows, labels, span = read
    right = rows.gather(1, labels[:, None])
    if not right.isfinite().all() or len(torch.unique(rows[0])) < 0.9 * rows.shape[1]:
        return None
    equal = (rows - right).abs() <= _TWICE * span
    return bool((equal.sum(1) > 1).all())


@torch.no_grad()
def own_logits_alike(logits: Any, target: Any, ignored: int) -> bool | None:
    """True if all rows have the same logit at their own place, it is their largest, and no label is there.

    The place of row i is class i: each sample is among the samples that it is compared with. None as
    of `right_logits_alike`, with fewer classes than rows, and if some rows do not count.
    """
    read = _counted_rows(logits, target, ignored)
    if read is None or len(read[0]) < len(logits) or len(logits) > logits.shape[1]:
        return None
    rows, labels, span = read
    if bool((labels == torch.arange(len(labels), device=labels.device)).any()):
        return False
    own = rows.diagonal()
    apart = _alike(logits) * span
    largest = bool((own >= rows.amax(1) - apart).all())
    return largest and float(own.max() - own.min()) <= apart


def _alike(logits: torch.Tensor) -> float:
    """The part of the range of logits by which equal ones may differ."""
    return max(_ALIKE, torch.finfo(logits.dtype).eps)


def _counted_rows(
    logits: Any, target: Any, ignored: int
) -> tuple[torch.Tensor, torch.Tensor, float] | None:
    """The rows of logits whose labels count, these labels, and the range of all logits that no mask hides."""
    if type(logits) is not torch.Tensor or type(target) is not torch.Tensor:
        return None
    if logits.dim() != 2 or target.dim() != 1 or target.is_floating_point():
        return None
    if logits.numel() > _MOST:
        return None
    counted = target != ignored
    if logits.shape[1] < _LEAST or int(counted.sum()) < _LEAST:
        return None
    finite = logits[logits.isfinite() & (logits > _MASKED)].float()
    span = float(finite.max() - finite.min()) if finite.numel() else 0.0
    return None if span <= 1e-2 else (logits[counted].float(), target[counted], span)


@torch.no_grad()
def scored_padding(logits: Any, target: Any, ignored: int) -> float | None:
    """The part of the labels that count whose logits are, to the bit, those of places that are ignored.

    A recurrent layer answers padding with zeros, so all places of padding have the same logits. The
    logits, `[n, classes]` or `[n, classes, places]`, that occur most often are looked at. None if all
    places have them, if fewer than 8 labels count, and if fewer than 8 places that are ignored have them.
    None too if other logits occur twice or more on average: those of a model that sees single tokens.
    """
    if type(logits) is not torch.Tensor or type(target) is not torch.Tensor:
        return None
    if logits.dim() < 2 or target.dim() != logits.dim() - 1 or target.is_floating_point():
        return None
    rows = logits.detach().movedim(1, -1).flatten(0, -2)
    rows = rows[:, :: -(-rows.shape[1] // _CLASSES)]
    counts = target.flatten() != ignored
    number = int(counts.sum())
    if min(number, len(counts) - number) < _LEAST or not bool(rows.isfinite().all()):
        return None
    _, kind, times = torch.unique(rows, dim=0, return_inverse=True, return_counts=True)
    often = kind == times.argmax()
    others, kinds = int((~often).sum()), len(times) - 1
    if int((often & ~counts).sum()) < _LEAST or others >= 2 * kinds:
        return None
    return int((often & counts).sum()) / number


def averages_all_places(losses: Any) -> bool:
    """True if class losses of single samples or places are averaged as they are, without a mask."""
    means = (node for operation, node in nodes(losses) if operation == "Mean")
    averaged = (preceding(first_input(node), KEEPS | RESHAPES) for node in means)
    return any(
        node is not None and operation_of(node) in _CLASS_LOSSES and node._saved_reduction == 0
        for node in averaged
    )
