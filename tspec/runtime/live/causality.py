"""Whether what a model computes of a token depends on later tokens, as its autograd graph says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from tspec.runtime.live.graph import (
    KEEPS,
    MATRIX_PRODUCTS,
    PASSES,
    REORDERS,
    RESHAPES,
    nodes,
    operation_of,
    rows_of,
    shape_of,
    signed,
    weighing_softmaxes,
)

_SHORTEST = 4
"""Of shorter sequences a mask says little."""
_FUSED = "ScaledDotProduct"
"""Begins the names of the operations that compute a whole attention."""
_RECURRENT = frozenset({"MkldnnRnnLayer", "CudnnRnn"})
_MOVES_PLACES = frozenset(
    {"ConstantPadNd", "Roll", "CopySlices", "IndexPut", "SliceScatter", "Gather", "Convolution"}
)
"""Operations that may put what was read at one place to another: a model may shift its inputs itself."""
_JOINS = frozenset({"Cat", "Stack"})
_PRODUCTS = frozenset({"Addmm", "Mm"})
_PLACE_BY_PLACE = (
    KEEPS
    | RESHAPES - {"Expand"}
    | REORDERS
    | {"Add", "Mul", "Div", "NativeLayerNorm", "Gelu", "Relu", "Silu", "Tanh", "AccumulateGrad"}
)
"""Operations that compute each place from one place."""


class Causality:
    """Reads the graphs of the first outputs."""

    def __init__(self) -> None:
        self._read = 0

    def is_causal(self, output: torch.Tensor) -> bool | None:
        """No place of an output sees later places: all attention of it is masked so, or there is none and places stay apart.

        Attention is a softmax of square matrices, or fused; recurrent layers that run forward keep places apart. None
        where the graph does not show it, as under activation checkpointing, and after the first outputs.
        """
        if self._read >= PASSES or output.grad_fn is None:
            return None
        self._read += 1
        walked = nodes(output)
        found = [
            each
            for operation, node in walked
            if operation in MATRIX_PRODUCTS or operation.startswith(_FUSED)
            for each in _attention(operation, node)
        ]
        if not found:
            return _keeps_places_apart(output.grad_fn)
        if False in found:
            return False
        moves = any(
            operation in _MOVES_PLACES or (operation in _JOINS and _joins_places(node))
            for operation, node in walked
        )
        return None if None in found or moves else True


def _joins_places(node: Any) -> bool:
    """What is joined in the last dimension stays at its place, all else may come to another."""
    return signed(node._saved_dim) not in (-1, len(shape_of(node)) - 1)


def _attention(operation: str, node: Any) -> Sequence[bool | None]:
    """Of each attention that a node computes, whether it leaves out later places; None where that is not shown."""
    if operation.startswith(_FUSED):
        return _fused(node)
    weights = (_saved(softmax, "result") for softmax, _ in weighing_softmaxes(node))
    return [None if each is None else _is_zero_above(each) for each in weights]


def _fused(node: Any) -> Sequence[bool | None]:
    """The same of fused attention, if a sequence looks at itself."""
    if node._saved_is_causal:
        return (True,)
    query, key = _saved(node, "query"), _saved(node, "key")
    if query is None or key is None:
        return (None,)
    if not query.shape[-2] == key.shape[-2] >= _SHORTEST:
        return ()
    mask = _saved(node, "attn_bias" if hasattr(node, "_saved_attn_bias") else "attn_mask")
    if mask is not None and mask.dtype != torch.bool:
        mask = mask.float().exp()
    return (False if mask is None else _is_zero_above(mask),)


def _saved(node: Any, name: str) -> torch.Tensor | None:
    """What a node saved for its backward pass. None if there is none, or if a hook would have to compute it."""
    saved = getattr(node, f"_raw_saved_{name}", None)
    if saved is None or saved.unpack_hook is not None:
        return None
    value = saved.data
    return value if isinstance(value, torch.Tensor) else None


@torch.no_grad()
def _is_zero_above(weights: torch.Tensor) -> bool | None:
    """Whether the first of a batch of square matrices is zero above its diagonal. None of short sequences."""
    size = weights.shape[-1]
    if weights.shape[-2] != size or size < _SHORTEST:
        return None
    return not bool(weights.reshape(-1, size, size)[0].triu(1).any())


def _keeps_places_apart(node: Any) -> bool | None:
    """Whether each place is computed from the token there, and by recurrent layers from those before it.

    All products have a row for each token, as the embedding has: a model that flattens sequences has fewer.
    """
    waiting, forward, rows, tokens = [(node, 0)], [], set(), [0]
    seen = set(waiting)
    while waiting:
        node, output = waiting.pop()
        operation = operation_of(node)
        if operation in _RECURRENT:
            reverse = node._saved_bidirectional or getattr(node, "_saved_reverse", False)
            forward.append(not reverse and output == 0)
        elif operation == "Embedding":
            tokens.append(rows_of(node))
        elif operation in _PRODUCTS:
            rows.add(rows_of(node))
        elif operation not in _PLACE_BY_PLACE:
            return None
        for edge in node.next_functions:
            if edge[0] is not None and edge not in seen:
                seen.add(edge)
                waiting.append(edge)
    return all(forward) if rows == {max(tokens)} else None
