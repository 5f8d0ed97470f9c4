"""Finds a second softmax of the logits of a class loss, over another dimension than the classes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tspec.runtime.live.losses.graph import (
    KEEPS,
    SCALES,
    SOFTMAXES,
    first_input,
    nodes,
    operation_of,
    shape_of,
    signed,
)

_CLASS_LOSSES = frozenset({"NllLoss", "NllLoss2D"})
_ALL_SOFTMAXES = SOFTMAXES | {"LogSoftmax"}
_CHAIN = 8
"""The number of operations between logits and a softmax of them: a temperature, a cast."""


def softmaxes_across(losses: Any) -> list[str]:
    """The shapes of logits that a class loss and another softmax of the same graph use. The class loss takes
    their softmax over the classes, the other softmax sums over another dimension.

    Square matrices are left out: similarities may be matched along both dimensions.
    """
    named = list(nodes(losses))
    of_classes = list(_of_class_losses(named))
    return [
        str(list(shape_of(other)))
        for operation, other in named
        if operation in _ALL_SOFTMAXES
        for softmax in of_classes
        if shape_of(other) == shape_of(softmax)
        and _logits(other) == _logits(softmax) is not None
        and _dim(other) != _dim(softmax)
        and not _is_square(shape_of(other))
    ]


def _of_class_losses(named: list[tuple[str, Any]]) -> Iterator[Any]:
    """The softmaxes of class losses."""
    for operation, node in named:
        softmax = first_input(node) if operation in _CLASS_LOSSES else None
        if softmax is not None and operation_of(softmax) == "LogSoftmax":
            yield softmax


def _logits(softmax: Any) -> tuple[Any, int] | None:
    """What computed the logits of a softmax, but for a temperature, and which of its results they are."""
    for _ in range(_CHAIN):
        with_graph = [each for each in softmax.next_functions if each[0] is not None]
        if len(with_graph) != 1:
            return None
        softmax, number = with_graph[0]
        if operation_of(softmax) not in KEEPS | SCALES:
            return softmax, number
    return None


def _dim(softmax: Any) -> int:
    return signed(softmax._saved_dim) % len(shape_of(softmax))


def _is_square(shape: tuple[int, ...]) -> bool:
    return len(shape) == 2 and shape[0] == shape[1]
