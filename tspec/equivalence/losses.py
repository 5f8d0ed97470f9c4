"""What the loss of a rank is of the reference's: its gradients are of its own loss."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from torch import Tensor

from tspec.equivalence.recording import Recording, TensorName
from tspec.layout.ranks import coordinates
from tspec.resolve.program.sharding import Axes


def gradient_factor(
    axes: Axes,
    data: frozenset[str],
    reference: Mapping[TensorName, Tensor],
    candidate: Sequence[Recording],
) -> float:
    """By what gradients of activations are multiplied to be those of the reference's loss.

    Ranks that see other data have other losses: those along the axes of `data`, over which the batch is cut. If the mean of n such losses is the reference's, each
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
            number = _groups(axes, data, losses)
            mean = sum(losses.values()) / len(losses)
            whole = float(reference[name].double().mean())
            return number, abs(mean - whole) > abs(mean * number - whole)
    return 1, False


def _groups(axes: Axes, data: frozenset[str], losses: Mapping[int, float]) -> int:
    """The number of ranks along the axes of `data` over which losses differ."""
    number = 1
    for axis, size in axes:
        if axis in data and any(len(set(each)) > 1 for each in _along(axes, axis, losses)):
            number *= size
    return number


def _along(axes: Axes, axis: str, losses: Mapping[int, float]) -> Iterator[list[float]]:
    """The losses of ranks that differ in their place on one axis only."""
    lines: dict[tuple[int, ...], list[float]] = {}
    for rank, loss in losses.items():
        at = coordinates(axes, rank)
        others = tuple(place for name, place in at.items() if name != axis)
        lines.setdefault(others, []).append(loss)
    yield from lines.values()
