"""Read from the autograd graph of a loss how the loss was computed.

Nodes are read by name, by the shape of their output and by the dimensions in their arguments.
Tensors saved for the backward pass are not unpacked, since that would recompute them under
activation checkpointing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import torch

from tspec.runtime.live.convert import tensors_in

PASSES = 16
"""The number of backward passes whose graphs are read. Later ones are computed in the same way."""
_CHAIN = 16
"""The number of operations that are followed back from a product or a loss."""
KEEPS = frozenset(
    {"ToCopy", "MaskedFill", "Clone", "NativeDropout", "FusedDropout", "Alias", "NanToNum"}
)
"""Operations whose output is their first input, element by element, or another number in its place."""
SCALES = frozenset({"Mul", "Div"})
"""Operations that keep the order of elements. Of two factors with a graph neither is the other's scale."""
RESHAPES = frozenset({"View", "UnsafeView", "ReshapeAlias", "Expand", "Squeeze", "Unsqueeze"})
REORDERS = frozenset({"Transpose", "Permute", "T"})
MATRIX_PRODUCTS = frozenset({"Bmm", "Mm"})
SOFTMAXES = frozenset({"Softmax", "SafeSoftmax"})
NORMS = frozenset({"LinalgVectorNorm", "Norm"})
_PICKS = frozenset({"Slice", "Select", "Index", "IndexSelect", "BackwardHookFunction"})
_ROWS = frozenset({"Slice", "Index", "IndexSelect", "Cat"})
"""Operations that pick or join rows, so that the other dimensions stay."""
_PARTS = frozenset({"Split", "SplitWithSizes", "Unbind", "Chunk"})
_PROJECTIONS = frozenset({"Addmm", "Mm"})
"""Operations that compute queries and keys of a layer's inputs."""
_MASKS = frozenset({"Add", "Sub", "Where"})
"""Operations that hide some scores and leave the others, or add a bias to them."""
_UNSEEN = KEEPS - {"MaskedFill", "NativeDropout", "FusedDropout"} | RESHAPES | REORDERS | _PICKS
"""Operations that compute no new values."""


def made_by(value: torch.Tensor) -> str:
    """The operation that computed the values of a tensor, such as `softmax`; empty without a graph."""
    return _made_by(value.grad_fn)


def logits_made_by(value: torch.Tensor) -> str | None:
    """The same of the logits whose log-softmax a tensor is; None of other tensors."""
    node = preceding(value.grad_fn, _UNSEEN)
    if node is None or operation_of(node) != "LogSoftmax":
        return None
    return _made_by(first_input(node))


def _made_by(node: Any) -> str:
    for _ in range(_CHAIN):
        if node is None or operation_of(node) not in _UNSEEN:
            break
        node = first_input(node)
    if node is None:
        return ""
    return snake_case(operation_of(node))


def over_classes(value: torch.Tensor) -> bool | None:
    """True if the log-softmax that computed `[n, classes, ...]` sums over the classes; None if the
    graph does not show it.
    """
    return _sums_over(value, 1)


def over_labels(value: torch.Tensor) -> bool | None:
    """The same of `[..., labels]`."""
    return _sums_over(value, value.dim() - 1)


def _sums_over(value: torch.Tensor, dim: int) -> bool | None:
    for node, shape, at in along(value.grad_fn, dim, only_input):
        if operation_of(node) == "LogSoftmax":
            return signed(node._saved_dim) % len(shape) == at
    return None


def softmax_dims(losses: Any) -> list[int]:
    """The dimensions, counted from the end, along which the softmaxes that weigh rows sum to one.

    Such a softmax is a factor of a product and a batch of square matrices: the sum of each of its rows is the
    sum of the weights. One of any shape that sums over the batch of a product is no weighing of rows.
    """
    return [
        dim
        for operation, node in nodes(losses)
        if operation in MATRIX_PRODUCTS
        for dim in (*(dim for _, _, dim in weighing_softmaxes(node)), *_over_batches(node))
    ]


def unscaled_scores(losses: Any) -> int:
    """The number of attention softmaxes whose scores are unscaled products of projections."""
    return sum(
        _is_unscaled(first_input(softmax))
        for operation, node in nodes(losses)
        if operation in MATRIX_PRODUCTS
        for _, softmax, _ in weighing_softmaxes(node)
    )


def weighing_softmaxes(product: Any) -> Iterator[tuple[int, Any, int]]:
    """The softmaxes whose rows one of the `MATRIX_PRODUCTS` multiplies.

    Yields the position of the factor, the softmax, and its dimension, counted from the end.
    """
    for factor, summed, kept in ((0, -1, -2), (1, -2, -1)):
        found = _softmax_before(product.next_functions[factor][0], summed, kept)
        if found is None:
            continue
        softmax, last, other = found
        shape = shape_of(softmax)
        size = len(shape)
        if size >= 3 and shape[-1] == shape[-2] > 1 and (last, other) == (size - 1, size - 2):
            yield factor, softmax, signed(softmax._saved_dim) % size - size


def crossing_softmaxes(product: Any) -> Iterator[Any]:
    """The softmaxes over their last dimension, no square matrices, that weigh what a batch of products sums over."""
    if operation_of(product) != "Bmm":
        return
    for factor, summed in ((0, -1), (1, -2)):
        for node, shape, dim in along(product.next_functions[factor][0], summed, only_input):
            if operation_of(node) in SOFTMAXES:
                own, last = signed(node._saved_dim) % len(shape), len(shape) - 1
                if own == dim == last > 0 and shape[-1] != shape[-2]:
                    yield node
                break


def _over_batches(product: Any) -> Iterator[int]:
    """The dimensions, counted from the end, of softmaxes that are no square matrices, sum to one over
    the batch of a product, and weigh what the product sums over.
    """
    if operation_of(product) != "Bmm":
        return
    for factor, summed in ((0, -1), (1, -2)):
        found = _softmax_before(product.next_functions[factor][0], summed, 0)
        if found is None:
            continue
        softmax, last, batch = found
        shape = shape_of(softmax)
        size = len(shape)
        is_square = size >= 3 and shape[-1] == shape[-2]
        own = signed(softmax._saved_dim) % size
        if not is_square and own == batch and shape[batch] > 1 and shape[last] > 1:
            yield own - size


def _is_unscaled(scores: Any) -> bool:
    """True if attention scores are a product of two projections that no operation multiplies,
    divides or normalises.
    """
    product = preceding(scores, KEEPS | RESHAPES | REORDERS | _MASKS)
    if product is None or operation_of(product) != "Bmm":
        return False
    factors = (following for following, _ in product.next_functions)
    return all(
        factor is not None and operation_of(factor) in _PROJECTIONS
        for factor in (preceding(each, _UNSEEN | _PARTS) for each in factors)
    )


def preceding(node: Any, passed: frozenset[str]) -> Any:
    """The first operation, backwards along the first inputs with a graph, that is none of these; None if it is too far away."""
    for _ in range(_CHAIN):
        if node is None or operation_of(node) not in passed:
            return node
        node = next((each for each, _ in node.next_functions if each is not None), None)
    return None


def nodes(losses: Any) -> list[tuple[str, Any]]:
    """All nodes of the graphs of some tensors, each once, after the name of its operation."""
    return [(_operation(node.name()), node) for node in reached(last_nodes(losses))]


def last_nodes(losses: Any) -> list[Any]:
    """The nodes that computed some tensors."""
    return [each.grad_fn for each in tensors_in(losses) if each.grad_fn is not None]


def reached(starts: Iterable[Any], without: Any = None) -> Iterator[Any]:
    """These nodes and all nodes before them, each once, but those that only a node before `without`
    leads to.
    """
    waiting = list(starts)
    seen = {*waiting, without}
    while waiting:
        node = waiting.pop()
        yield node
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)


def operation_of(node: Any) -> str:
    """The name of the forward operation: `Softmax` for `SoftmaxBackward0`."""
    return _operation(node.name())


@cache
def _operation(name: str) -> str:
    """The same of a node's name, taken apart once: a graph has hundreds of nodes of a dozen names."""
    return name.rpartition("::")[2].rstrip("0123456789").removesuffix("Backward")


def snake_case(operation: str) -> str:
    """The name of an operation as torch's functions are named: `max_pool2d` of `MaxPool2D`."""
    return re.sub("(?<=[a-z0-9])(?=[A-Z])", "_", re.sub("(?<=[0-9])D", "d", operation)).lower()


def first_input(node: Any) -> Any:
    """The node of the first input; None without inputs, or if it has no graph."""
    return node.next_functions[0][0] if node.next_functions else None


def only_input(node: Any) -> Any:
    """The node of the only input that has a graph, None of several or none."""
    following = [each for each, _ in node.next_functions if each is not None]
    return following[0] if len(following) == 1 and following[0]._input_metadata else None


def saved(node: Any, name: str) -> torch.Tensor | None:
    """The tensor that a node saved for its backward pass under this name. None if there is none, or
    if a hook would have to compute it.
    """
    held = getattr(node, f"_raw_saved_{name}", None)
    if held is None or held.unpack_hook is not None:
        return None
    value = held.data
    return value if isinstance(value, torch.Tensor) else None


def shape_of(node: Any) -> tuple[int, ...]:
    """The shape of the node's output."""
    return tuple(node._input_metadata[0].shape)


def _softmax_before(node: Any, first: int, second: int) -> tuple[Any, int, int] | None:
    """The softmax that computed a factor of a product, and which of its dimensions became two of the
    factor's.
    """
    for _ in range(_CHAIN):
        if node is None or not node._input_metadata:
            return None
        shape, operation = shape_of(node), operation_of(node)
        if operation in SOFTMAXES:
            return node, first % len(shape), second % len(shape)
        following = only_input(node)
        if following is None:
            return None
        before = shape_of(following)
        dims = [
            dim_before(node, operation, shape, before, dim % len(shape)) for dim in (first, second)
        ]
        if None in dims:
            return None
        first, second = dims  # type: ignore[assignment]
        node = following
    return None


def along(
    node: Any, dim: int, source: Callable[[Any], Any]
) -> Iterator[tuple[Any, tuple[int, ...], int]]:
    """Follow a dimension backwards, from a node to its `source`, as long as one dimension of the input became it.

    Yields each node with the shape of its output and the place of the dimension there.
    """
    for _ in range(_CHAIN):
        if node is None or not node._input_metadata:
            return
        shape = shape_of(node)
        dim %= max(len(shape), 1)
        yield node, shape, dim
        following = source(node)
        if following is None:
            return
        before = dim_before(node, operation_of(node), shape, shape_of(following), dim)
        if before is None:
            return
        node, dim = following, before


def scaled_input(node: Any) -> Any:
    """The only input with a graph, beside a single number that it is scaled by, such as a temperature
    that is learned. Of a concatenation, such as of two views of each sample, the first input.
    """
    following = [each for each, _ in node.next_functions if each is not None]
    if operation_of(node) == "Cat":
        following = following[:1]
    if len(following) == 2 and operation_of(node) in SCALES:
        following = [each for each in following if _size(each) > 1]
    return following[0] if len(following) == 1 and following[0]._input_metadata else None


def _size(node: Any) -> int:
    size = 1
    for each in shape_of(node) if node._input_metadata else ():
        size *= each
    return size


def dim_before(
    node: Any, operation: str, shape: Sequence[int], before: Sequence[int], dim: int
) -> int | None:
    """The dimension of an operation's input that became one of its output; None if none did."""
    if operation in KEEPS or operation in SCALES:
        return dim if shape == before else None
    if operation == "Transpose":
        swapped = {signed(each) % len(shape) for each in (node._saved_dim0, node._saved_dim1)}
        return (swapped - {dim}).pop() if dim in swapped and len(swapped) == 2 else dim
    if operation == "Permute":
        return int(signed(node._saved_dims[dim])) % len(before)
    if operation == "T":
        return len(shape) - 1 - dim
    if operation == "Expand":
        found = dim - len(shape) + len(before)
        return found if found >= 0 and before[found] == shape[dim] else None
    if operation in _ROWS:
        return dim if len(before) == len(shape) and before[dim] == shape[dim] > 1 else None
    if operation in RESHAPES:
        return _same_stride(shape, before, dim)
    return None


def rows_of(node: Any) -> int:
    """The number of rows of a node's output, in all batches."""
    return _product(shape_of(node)[:-1])


def _same_stride(shape: Sequence[int], before: Sequence[int], dim: int) -> int | None:
    """The dimension of `before` with the same size and the same stride in elements."""
    inner = _product(shape[dim + 1 :])
    for each, size in enumerate(before):
        if size == shape[dim] > 1 and _product(before[each + 1 :]) == inner:
            return each
    return None


def _product(sizes: Sequence[int]) -> int:
    found = 1
    for size in sizes:
        found *= size
    return found


def signed(value: int) -> int:
    """The dimension as a signed number: torch gives a negative one as an unsigned number of 64 bits."""
    return value - 2**64 if value >= 2**63 else value
