"""The factor from a rank's loss to the reference's. The gradients of a rank are those of its own
loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, log
from typing import TypeVar

import torch
from torch import Tensor

from tspec.equivalence.recording import Recording, TensorName
from tspec.layout.ranks import coordinates
from tspec.resolve.program.sharding import Axes

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LossScale:
    """The factors from the candidate's losses and gradients of activations to the reference's.

    `microbatches` is the factor between losses of one micro-batch: 1, or the number of
    micro-batches, or its inverse. It is not 1 where one side divides its losses by that number and
    the other one its gradients.
    """

    losses: float = 1.0
    gradients: float = 1.0
    microbatches: float = 1.0


def loss_scale(
    axes: Axes,
    data: frozenset[str],
    reference: Mapping[TensorName, Tensor],
    candidate: Sequence[Recording],
    gradients: Callable[[], float | None],
) -> LossScale:
    """The factors from the losses of the candidate's ranks to the reference's.

    Ranks with other data have other losses: those along the axes of `data`, over which the batch is
    cut. By a fault, ranks of these axes may also be given the same data; then their outputs are
    equal too. If the mean of the n losses is the reference's, each counts for one n-th of it; else
    their sum is the reference's.

    `gradients` returns the logarithm of the factor between both sides' gradients of parameters, or
    None if it is unknown. Means of losses that differ by the number of micro-batches are no fault
    if the gradients agree.
    """
    number, summed = _shares(axes, data, reference, candidate)
    losses = tuple(_means(reference, candidate))
    per = len({name.microbatch for name, _, _ in losses})
    found = LossScale(float(number) if summed else 1.0, 1.0 if summed else 1 / number)
    if per < 2 or _near(losses, found.losses, 1.0, per):
        return found
    for times in (float(per), 1 / per):
        if _near(losses, 1.0, times, per):
            moved = gradients()
            if moved is None or abs(moved) >= abs(moved - log(times)):
                return found
            return LossScale(1 / times, 1 / (number * times), times)
    return found


NEARLY = 0.3
"""The largest effect of another fault on losses, as a fraction of the logarithm of the number of
micro-batches.
"""


def _near(
    losses: Sequence[tuple[TensorName, float, float]], factor: float, times: float, per: int
) -> bool:
    """True if the losses, each the mean over ranks times `factor`, are nearly `times` the
    reference's, on geometric average.
    """
    if not all(0 < made * whole < inf for _, made, whole in losses):
        return False
    off = sum(log(made * factor / whole / times) for _, made, whole in losses) / len(losses)
    return abs(off) <= NEARLY * log(per)


def _means(
    reference: Mapping[TensorName, Tensor], candidate: Sequence[Recording]
) -> Iterator[tuple[TensorName, float, float]]:
    """The losses of the first step: the mean of the candidate's ranks, and the reference's."""
    first = min((name.step for name in reference if name.kind == "losses"), default=0)
    for name in reference:
        if (name.kind, name.step) == ("losses", first):
            held = [
                float(each.tensors[name].double().mean())
                for each in candidate
                if name in each.tensors
            ]
            if held:
                yield name, sum(held) / len(held), float(reference[name].double().mean())


def _shares(
    axes: Axes,
    data: frozenset[str],
    reference: Mapping[TensorName, Tensor],
    candidate: Sequence[Recording],
) -> tuple[int, bool]:
    """The number of ranks with different data, and whether the reference's loss is the sum of
    theirs.
    """
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
    """The number of ranks along the axes of `data` over which losses differ or outputs are equal."""
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
    """Each rank's last output, from which the loss is made.

    Sketches are left out, since they describe the rank's own part.
    """
    last = next((name for name in reversed(tuple(reference)) if name.kind == "outputs"), None)
    if last is None:
        return {}
    return {
        rank: each.tensors[last]
        for rank, each in enumerate(candidate)
        if last in each.tensors and last not in each.sketched
    }


def _along(axes: Axes, axis: str, held: Mapping[int, T]) -> Iterator[list[T]]:
    """The tensors of ranks whose places differ on one axis only."""
    lines: dict[tuple[int, ...], list[T]] = {}
    for rank, each in held.items():
        at = coordinates(axes, rank)
        others = tuple(place for name, place in at.items() if name != axis)
        lines.setdefault(others, []).append(each)
    yield from lines.values()
