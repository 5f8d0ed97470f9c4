"""Sums over a whole batch that are added to a value of each sample.

In `(errors.sum(1) + divergence.sum()).mean()` the sum of all samples' divergences is added to the error
of each, so it counts as many times as the batch has samples.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tspec.runtime.live.losses.graph import (
    first_input,
    last_nodes,
    operation_of,
    reached,
    shape_of,
)
from tspec.runtime.live.losses.sums import constant_of, ends

_ADDS = frozenset({"Add", "Sub", "Rsub"})
_CHAIN = 16
"""The number of scalar operations that are followed back to a sum."""
_SMALL = 0.1
"""A smaller factor may allow for the size of the batch, as a division does."""


def spread_sums(losses: Any) -> list[str]:
    """The shapes of tensors whose sum over all elements is added to values of single samples.

    Each text is `[samples, ...] -> [samples]`, the shape before the sum and that to which it is
    added, and is there once. A sum counts if it is computed of the samples: it shares an activation
    with the rest of the loss.
    """
    found: dict[str, None] = {}
    for node, _ in ends(losses, lambda _: False):
        if operation_of(node) not in _ADDS or not node._input_metadata:
            continue
        shape = shape_of(node)
        if not shape or shape[0] < 2:
            continue
        for total, before in _totals(node, shape[0]):
            if _is_of_samples(losses, total, shape[0]):
                found[f"{list(before)} -> {list(shape)}"] = None
    return list(found)


def _totals(addition: Any, size: int) -> Iterator[tuple[Any, tuple[int, ...]]]:
    """The sums over `[size, ...]` that are scalar operands of an addition, each with the shape before it."""
    waiting = [each for each, _ in addition.next_functions if each is not None]
    for _ in range(_CHAIN):
        if not waiting:
            return
        node = waiting.pop()
        if not node._input_metadata or shape_of(node):
            continue
        operation = operation_of(node)
        if operation == "Sum":
            before = tuple(node._saved_self_sym_sizes)
            if before and before[0] == size:
                yield node, before
        elif operation in _ADDS or operation == "Neg" or _is_hardly_scaled(node):
            waiting += [each for each, _ in node.next_functions if each is not None]


def _is_hardly_scaled(node: Any) -> bool:
    """True for a product with a number that is not small, so that the sum keeps its weight."""
    factor = constant_of(node) if operation_of(node) == "Mul" else None
    return factor is not None and abs(factor) >= _SMALL


def _is_of_samples(losses: Any, total: Any, size: int) -> bool:
    """True if what is summed and the rest of the loss have an activation of the batch in common."""
    rest = set(reached(last_nodes(losses), without=total))
    source = first_input(total)
    return source is not None and any(
        node in rest and node.next_functions and node._input_metadata and _batch(node) == size
        for node in reached([source])
    )


def _batch(node: Any) -> int:
    """The first dimension of a node's output; 0 of a scalar."""
    return (*shape_of(node), 0)[0]
