"""What the loss of a rank is of the reference's: its gradients are of its own loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import torch
from torch import Tensor

from tspec.equivalence.recording import Recording, TensorName
from tspec.layout.ranks import coordinates
from tspec.resolve.program.sharding import Axes

T = TypeVar("T")


def gradient_factor(
    axes: Axes,
    data: frozenset[str],
    reference: Mapping[TensorName, Tensor],
    candidate: Sequence[Recording],
) -> float:
    """By what gradients of activations are multiplied to be those of the reference's loss.

    Ranks that see other data have other losses: those along the axes of `data`, over which the batch is cut. So do, by a fault, ranks
    that were given the same data: these have the same outputs, too. If the mean of n such losses is the reference's, each
    counts for one n-th of it, else the reference's is their sum.
    """
    number, summed = _shares(axes, data, reference, candidate)
    return 1.0 if summed else 1 / number


def loss_factor(
    axes: Axes,
    data: frozenset[str],
    reference: Mapping[TensorName, Tensor],
    candidate: Sequence[Recording],
) -> float:
    """By what the mean of the ranks' losses is multiplied to be the reference's, which may be their sum."""
    number, summed = _shares(axes, data, reference, candidate)
    return float(number) if summed else 1.0


def _shares(
    axes: Axes,
    data: frozenset[str],
    reference: Mapping[TensorName, Tensor],
    candidate: Sequence[Recording],
) -> tuple[int, bool]:
    """How many ranks see other data, and whether the reference's loss is the sum of theirs."""
    for name in reference:
        losses = {
            rank: float(each.tensors[name].double().mean())
            for rank, each in enumerate(candidate)
            if name in each.tensors
        }
        if name.kind == "losses" and losses:
            number = _groups(axes, data, losses, _last_outputs(reference, candidate))
            mean = sum(losses.values()) / len(losses)
            whole = float(reference[name].double().mean())
            return number, abs(mean - whole) > abs(mean * number - whole)
    return 1, False


def _groups(
    axes: Axes, data: frozenset[str], losses: Mapping[int, float], outputs: Mapping[int, Tensor]
) -> int:
    """The number of ranks along the axes of `data` over which losses differ, or outputs are the same."""
    number = 1
    for axis, size in axes:
        if axis not in data:
            continue
        differ = any(len(set(each)) > 1 for each in _along(axes, axis, losses))
        lines = _along(axes, axis, outputs)
        alike = [torch.equal(each, line[0]) for line in lines for each in line[1:]]
        if differ or (alike and all(alike)):
            number *= size
    return number


def _last_outputs(
    reference: Mapping[TensorName, Tensor], candidate: Sequence[Recording]
) -> dict[int, Tensor]:
    """What ranks have of the last output, from which the loss is made; nothing of sketches, which are of the rank's own part."""
    last = next((name for name in reversed(tuple(reference)) if name.kind == "outputs"), None)
    if last is None:
        return {}
    return {
        rank: each.tensors[last]
        for rank, each in enumerate(candidate)
        if last in each.tensors and last not in each.sketched
    }


def _along(axes: Axes, axis: str, held: Mapping[int, T]) -> Iterator[list[T]]:
    """What ranks hold that differ in their place on one axis only."""
    lines: dict[tuple[int, ...], list[T]] = {}
    for rank, each in held.items():
        at = coordinates(axes, rank)
        others = tuple(place for name, place in at.items() if name != axis)
        lines.setdefault(others, []).append(each)
    yield from lines.values()
