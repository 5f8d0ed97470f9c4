"""Labels of samples that are compared with the matches of all samples of their batch, as two encoders compare
images with their texts: sample i belongs to match i.
"""

from __future__ import annotations

from typing import Any

import torch

from tspec.runtime.live.losses.graph import (
    KEEPS,
    REORDERS,
    RESHAPES,
    SCALES,
    operation_of,
    scaled_input,
)

_LAYOUTS = KEEPS | RESHAPES | REORDERS
_LEAST = 8
"""Of fewer samples, labels may be in another order on purpose, as those of a task with few classes."""
_CHAIN = 16


@torch.no_grad()
def in_order_of_matches(logits: Any, target: Any) -> bool | None:
    """True if the labels are 0, 1, 2, and so on; false if all are 0, or if they are in another order.

    `logits` are `[n, n]` products of the vectors of two tensors, which a model computed; `target` is `[n]`. None of
    other logits, of products of a tensor with itself, and of other labels.
    """
    if not isinstance(logits, torch.Tensor) or not isinstance(target, torch.Tensor):
        return None
    if target.is_floating_point() or target.dim() != 1:
        return None
    size = len(target)
    if size < _LEAST or tuple(logits.shape) != (size, size) or not _are_of_two(logits.grad_fn):
        return None
    order = torch.arange(size, device=target.device)
    if torch.equal(target, order):
        return True
    others = torch.equal(target.sort().values, order) or not bool(target.any())
    return False if others else None


def _are_of_two(scores: Any) -> bool:
    """True if scores are products of two tensors that were computed, and may be scaled."""
    product = scores
    for _ in range(_CHAIN):
        if product is None or operation_of(product) not in _LAYOUTS | SCALES:
            break
        product = scaled_input(product)
    if product is None or operation_of(product) != "Mm":
        return False
    first, second = (_source(*each) for each in product.next_functions)
    computed = [each for each, _ in (first, second) if each is not None]
    return (
        len(computed) == 2
        and first != second
        and all(operation_of(each) != "AccumulateGrad" for each in computed)
    )


def _source(node: Any, index: int) -> tuple[Any, int]:
    """The node, with the number of its result, that computed what was only laid out otherwise."""
    for _ in range(_CHAIN):
        if node is None or operation_of(node) not in _LAYOUTS:
            break
        node, index = node.next_functions[0]
    return node, index
