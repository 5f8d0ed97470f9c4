"""Masks that are to hide scores from a softmax, and leave them a weight."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from tspec.runtime.live.losses.graph import (
    KEEPS,
    RESHAPES,
    SOFTMAXES,
    first_input,
    nodes,
    operation_of,
    preceding,
    saved,
    signed,
)

SHARE = 0.01
"""Scores that are hidden have less than this part of the weight together."""
_BEFORE = KEEPS - {"MaskedFill"} | {"Div"}


@torch.no_grad()
def weak_masks(losses: Any) -> int:
    """Counts softmaxes in a graph whose mask hides nothing: scores that it filled with a number, or
    multiplied by 0, keep a weight.

    Softmaxes whose weights are masked again do not count. Nor do rows with all scores hidden, which
    must get some weight.
    """
    graph = nodes(losses)
    again = {softmax for operation, node in graph for softmax in _masked_again(operation, node)}
    return sum(
        _leaks(node) for operation, node in graph if operation in SOFTMAXES and node not in again
    )


def _masked_again(operation: str, node: Any) -> Iterator[Any]:
    """The softmax whose weights an operation masks."""
    if operation == "MaskedFill" or _factor(operation, node) is not None:
        before = preceding(_only_graph(node), KEEPS | RESHAPES)
        if before is not None and operation_of(before) in SOFTMAXES:
            yield before


def _leaks(softmax: Any) -> bool:
    """True if masked scores get a weight in most of the rows that have masked scores."""
    fill = preceding(first_input(softmax), _BEFORE)
    hidden = None if fill is None else _hidden(operation_of(fill), fill)
    weights = saved(softmax, "result")
    if hidden is None or weights is None or not weights.dim():
        return False
    try:
        hidden = hidden.expand(weights.shape)
    except RuntimeError:  # of another shape: it was reshaped in between
        return False
    dim = signed(softmax._saved_dim) % weights.dim()
    mixed = hidden.any(dim) & ~hidden.all(dim)
    share = (weights * hidden).sum(dim)[mixed]
    return bool(share.numel()) and bool((share > SHARE).float().mean() > 0.5)


def _hidden(operation: str, node: Any) -> torch.Tensor | None:
    """A boolean mask of the scores that an operation replaced by a number; None if it replaced
    none.
    """
    if operation == "MaskedFill":
        return saved(node, "mask")
    if operation == "Where":
        condition = saved(node, "condition")
        inputs = [each for each, _ in node.next_functions]
        if condition is None or sum(each is not None for each in inputs) != 1:
            return None
        return ~condition if inputs[0] is not None else condition
    factor = _factor(operation, node)
    return None if factor is None else factor == 0


def _factor(operation: str, node: Any) -> torch.Tensor | None:
    """The mask of zeros and ones that scores are multiplied by; None if it is no such product."""
    if operation != "Mul" or _only_graph(node) is None:
        return None
    factor = saved(node, "other" if node.next_functions[0][0] is not None else "self")
    if factor is None or factor.dim() < 2 or not bool(((factor == 0) | (factor == 1)).all()):
        return None
    return factor


def _only_graph(node: Any) -> Any:
    """The node of the only input that has a graph, None of several or none."""
    following = [each for each, _ in node.next_functions if each is not None]
    return following[0] if len(following) == 1 else None
