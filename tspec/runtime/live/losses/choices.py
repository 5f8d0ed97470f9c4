"""Finds a choice of the best of several, such as experts, by probabilities that sum to one over the samples instead of over the experts."""

from __future__ import annotations

from typing import Any

from tspec.runtime.live.losses.graph import (
    SOFTMAXES,
    dim_before,
    first_input,
    nodes,
    only_input,
    operation_of,
    shape_of,
    signed,
)

_CHAIN = 16
"""The number of operations that are followed back from a choice."""
_SOFTMAXES = SOFTMAXES | {"LogSoftmax"}


def choices_across(losses: Any) -> list[str]:
    """The shapes of probabilities that sum to one along one dimension, while the best along the
    last, another dimension, are chosen.

    The reverse is sound: each sample divides itself among the experts, and these choose samples.
    """
    softmaxes = (_softmax(node) for operation, node in nodes(losses) if operation == "Topk")
    return [str(list(shape_of(node))) for node in softmaxes if node is not None]


def _softmax(choice: Any) -> Any:
    """The softmax along another dimension than the last, if a choice is among the last; else None."""
    node = first_input(choice)
    if node is None or not node._input_metadata:
        return None
    dim = signed(choice._saved_dim) % len(shape_of(node))
    for _ in range(_CHAIN):
        size = len(shape_of(node))
        if operation_of(node) in _SOFTMAXES:
            is_across = signed(node._saved_dim) % size != dim == size - 1
            return node if is_across else None
        following = only_input(node)
        if following is None:
            return None
        before = dim_before(node, operation_of(node), shape_of(node), shape_of(following), dim)
        if before is None:
            return None
        node, dim = following, before
    return None
