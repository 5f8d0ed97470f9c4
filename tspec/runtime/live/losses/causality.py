"""Reads from the autograd graph whether a model's output at a token depends on later tokens."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

import torch

from tspec.runtime.live.losses.graph import (
    KEEPS,
    MATRIX_PRODUCTS,
    PASSES,
    REORDERS,
    RESHAPES,
    operation_of,
    reached,
    rows_of,
    saved,
    shape_of,
    signed,
    weighing_softmaxes,
)
from tspec.runtime.live.losses.tokens import TokenHistory
from tspec.runtime.live.sampling import TrainingSampling

_SHORTEST = 4
"""Shorter sequences prove little about a mask."""
_FUSED = "ScaledDotProduct"
"""Begins the names of the operations that compute a whole attention."""
_VALUES = 2
"""The place of the values among the inputs of a fused attention."""
_RECURRENT = frozenset({"MkldnnRnnLayer", "CudnnRnn"})
_MOVES_PLACES = frozenset(
    {"ConstantPadNd", "Roll", "CopySlices", "IndexPut", "SliceScatter", "Gather", "Convolution"}
)
"""Operations that may move elements to other positions: a model may shift its inputs itself."""
_JOINS = frozenset({"Cat", "Stack"})
_PRODUCTS = frozenset({"Addmm", "Mm"})
_PLACE_BY_PLACE = (
    KEEPS
    | RESHAPES - {"Expand"}
    | REORDERS
    | {"Add", "Mul", "Div", "NativeLayerNorm", "Gelu", "Relu", "Silu", "Tanh", "AccumulateGrad"}
)
"""Operations that compute each place from one place."""
_WITHIN_PLACES = frozenset({"Softmax", "LogSoftmax", "Cat"})
"""Operations that do so if their dimension is the last one."""
_CELL = (
    {"AccumulateGrad", "Add", "Mul", "Sub", "Div", "Rsub", "Sigmoid", "Tanh", "Relu"}
    | {"Addmm", "Mm", "T", "Transpose", "NativeLayerNorm", "NativeDropout", "Clone"}
    | {"Split", "UnsafeSplit", "SplitWithSizes", "View", "UnsafeView", "Squeeze", "Unsqueeze"}
    | {"ThnnFusedGruCell", "ThnnFusedLstmCell"}
)  # fmt: skip
"""Operations that compute a recurrent layer's state at one position from its input and the state before."""


class Sight(Enum):
    """The later positions that attention sees."""

    NONE = "none"
    NEXT = "next"
    """Each position whose label counts sees the next one, and so the token to be predicted."""
    SOME = "some"


class Causality:
    """Reads the graphs of the first outputs."""

    def __init__(self, tokens: TokenHistory, trainings: TrainingSampling) -> None:
        self._tokens = tokens
        self._sight_of_first = trainings.of_first(PASSES, self._sight)

    def sees_later(self, output: torch.Tensor, target: torch.Tensor, ignored: int) -> str | None:
        """The later positions, in the token sequence of the targets, that an output position
        depends on: a value of `Sight`.

        None if the targets are no tokens, if the graph does not show the dependency, or after the
        first outputs.
        """
        return None if output.grad_fn is None else self._sight_of_first(output, target, ignored)

    def _sight(self, output: torch.Tensor, target: torch.Tensor, ignored: int) -> str | None:
        found = self._tokens.sequence_of(target, ignored)
        if found is None:
            return self._tokens.columns.sees_later(output, target, ignored)
        ahead = self._tokens.next_tokens(target, ignored)
        counts = None if ahead is None else ahead[1][0] != ignored
        sight = sight_of(output.grad_fn, found[1], counts)
        return None if sight is None else sight.value


def sight_of(output: Any, tokens: torch.Tensor, counts: torch.Tensor | None = None) -> Sight | None:
    """The later positions that attention to a sequence of tokens sees.

    `Sight.NONE` if there is no attention and positions are computed independently. Attention is a
    softmax of square matrices, or a fused kernel. Recurrent layers that run forward only count as
    independent. Only attention to values computed from `tokens` counts: an encoder of other tokens
    may look at all of them. If no embedding of the tokens has a gradient, all attention counts.
    `output` is the node that computed the logits. `counts` are the positions of the first sequence
    whose labels count, all if not given. None if there is no node, or the graph does not
    show it, as under activation checkpointing.
    """
    if output is None:
        return None
    walked = [(operation_of(node), node) for node in reached([output])]
    reaching = _computed_from(walked, tokens)
    found = [
        each
        for operation, node in walked
        if operation in MATRIX_PRODUCTS or operation.startswith(_FUSED)
        for each in _attention(operation, node, reaching, counts)
    ]
    if not found:
        return Sight.NONE if _keeps_places_apart(output, reaching) else None
    if Sight.NEXT in found:
        return None if _moves_places(walked, reaching) else Sight.NEXT
    if Sight.SOME in found:
        return Sight.SOME
    return None if None in found or _moves_places(walked, reaching) else Sight.NONE


def _computed_from(walked: Sequence[tuple[str, Any]], tokens: torch.Tensor) -> frozenset[Any]:
    """The nodes computed from rows that an embedding looked up for the tokens; all nodes if no
    embedding did.
    """
    waiting = [
        node for operation, node in walked if operation == "Embedding" and _looks_up(node, tokens)
    ]
    if not waiting:
        return frozenset(node for _, node in walked)
    users: dict[Any, list[Any]] = {}
    for _, node in walked:
        for following, _ in node.next_functions:
            users.setdefault(following, []).append(node)
    reached = set(waiting)
    while waiting:
        for user in users.get(waiting.pop(), ()):
            if user not in reached:
                reached.add(user)
                waiting.append(user)
    return frozenset(reached)


def _looks_up(embedding: Any, tokens: torch.Tensor) -> bool:
    indices = saved(embedding, "indices")
    return (
        indices is not None
        and indices.shape == tokens.shape
        and indices.device == tokens.device
        and torch.equal(indices, tokens)
    )


def _moves_places(walked: Sequence[tuple[str, Any]], reaching: frozenset[Any]) -> bool:
    return any(
        operation in _MOVES_PLACES or (operation in _JOINS and _joins_places(node))
        for operation, node in walked
        if node in reaching
    )


def _joins_places(node: Any) -> bool:
    """True if tensors are joined in another dimension than the last, so that elements may come to
    another position.
    """
    return signed(node._saved_dim) not in (-1, len(shape_of(node)) - 1)


def _attention(
    operation: str, node: Any, reaching: frozenset[Any], counts: torch.Tensor | None
) -> Sequence[Sight | None]:
    """For each attention over values computed from the tokens: which later positions it sees.

    None where the graph does not show that.
    """
    if operation.startswith(_FUSED):
        return _fused(node, counts) if node.next_functions[_VALUES][0] in reaching else ()
    attended = [following for following, _ in node.next_functions]
    weights = (
        saved(softmax, "result")
        for factor, softmax, _ in weighing_softmaxes(node)
        if attended[1 - factor] in reaching
    )
    return [None if each is None else _sight(each, counts) for each in weights]


def _fused(node: Any, counts: torch.Tensor | None) -> Sequence[Sight | None]:
    """The same for fused self-attention. Empty if queries and keys differ in number or are few."""
    if node._saved_is_causal:
        return (Sight.NONE,)
    query, key = saved(node, "query"), saved(node, "key")
    if query is None or key is None:
        return (None,)
    if not query.shape[-2] == key.shape[-2] >= _SHORTEST:
        return ()
    mask = saved(node, "attn_bias" if hasattr(node, "_saved_attn_bias") else "attn_mask")
    if mask is not None and mask.dtype != torch.bool:
        mask = mask.float().exp()
    return (Sight.NEXT if mask is None else _sight(mask, counts),)


@torch.no_grad()
def _sight(weights: torch.Tensor, counts: torch.Tensor | None) -> Sight | None:
    """The later positions to which the first of a batch of square matrices gives weight. None for
    short sequences.

    A position that no query attends to is padding. A mask may be broadcast over the queries.
    """
    size = weights.shape[-1]
    if size < _SHORTEST or weights.shape[-2] not in (1, size):
        return None
    first = weights.reshape(-1, weights.shape[-2], size)[0].expand(size, size) != 0
    if not first.triu(1).any():
        return Sight.NONE
    is_next_seen = first.diagonal(1) | ~first.any(0)[1:]
    if counts is not None and size - 1 <= len(counts) <= size and counts[: size - 1].any():
        is_next_seen = is_next_seen[counts[: size - 1]]
    return Sight.NEXT if is_next_seen.all() else Sight.SOME


def _keeps_places_apart(node: Any, reaching: frozenset[Any]) -> bool | None:
    """True if each position is computed from its own token and, by recurrent layers, from earlier
    ones. What is not computed from the tokens, such as an encoder's output, may be of any position.

    All products must have one row for each token, as the embedding has, but for those within a
    loop over the positions. A model that flattens sequences has fewer rows.
    """
    waiting, forward, rows, tokens = [(node, 0)], [], set(), [0]
    seen, loops = set(waiting), False
    while waiting:
        node, output = waiting.pop()
        operation = operation_of(node)
        if operation == "Stack":
            inputs = _inputs_of_loop(node, reaching)
            if inputs is None:
                return None
            loops, node = True, inputs
        elif operation in _RECURRENT:
            reverse = node._saved_bidirectional or getattr(node, "_saved_reverse", False)
            forward.append(not reverse and output == 0)
        elif operation == "Embedding":
            tokens.append(rows_of(node))
        elif operation in _PRODUCTS:
            rows.add(rows_of(node))
        elif not _computes_places(operation, node, reaching):
            return None
        for edge in node.next_functions:
            if edge[0] in reaching and edge not in seen:
                seen.add(edge)
                waiting.append(edge)
    is_for_each_token = rows == {max(tokens)} or (loops and not rows)
    return all(forward) if is_for_each_token else None


def _computes_places(operation: str, node: Any, reaching: frozenset[Any]) -> bool:
    """True if an operation computes each place from one place. Of a product of matrices the rows of
    the first are places, as in attention to an encoder's output.
    """
    if operation == "Bmm":
        return node.next_functions[1][0] not in reaching
    if operation == "Expand":
        before, output = node.next_functions[0]
        return shape_of(node) == tuple(before._input_metadata[output].shape)
    if operation in _WITHIN_PLACES:
        return signed(node._saved_dim) in (-1, len(shape_of(node)) - 1)
    return operation in _PLACE_BY_PLACE


def _inputs_of_loop(stack: Any, reaching: frozenset[Any]) -> Any:
    """The node that takes a sequence apart, if a loop computes each position of a stack from its
    own position of the sequence and from earlier ones; None otherwise.

    This is how torch computes a GRU on a CPU, and how a script calls a recurrent cell.
    """
    seen: set[Any] = set()
    bases: set[Any] = set()
    for position, (computed, _) in enumerate(stack.next_functions):
        waiting = [computed]
        while waiting:
            node = waiting.pop()
            if node not in reaching or node in seen:
                continue
            seen.add(node)
            if operation_of(node) not in _CELL:
                return None
            for following, output in node.next_functions:
                taken = _position(following, output) if following in reaching else None
                if taken is None:
                    waiting.append(following)
                elif taken[1] > position:
                    return None
                else:
                    bases.add(taken[0])
    taken_apart = {(each.next_functions, each._saved_dim) for each in bases}
    return bases.pop() if len(taken_apart) == 1 else None


def _position(node: Any, output: int) -> tuple[Any, int] | None:
    """The node, and the position that this output of it takes of one of the first two of three
    dimensions: of sequences in a batch. None if it takes none.
    """
    operation = operation_of(node)
    if operation not in ("Unbind", "Select") or len(shape_of(node)) != 2:
        return None
    if signed(node._saved_dim) not in (0, 1, -3, -2):
        return None
    return node, output if operation == "Unbind" else signed(node._saved_index)
