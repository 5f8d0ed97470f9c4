"""What the autograd graph of a loss says of how the loss was computed.

Nodes are read by name, by the shape of what they computed and by the dimensions that they were called with.
Nothing that was saved for the backward pass is unpacked: under activation checkpointing that would compute it again.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import torch
from torch import nn

from tspec.runtime.live.convert import tensors_in
from tspec.runtime.live.features import local_part
from tspec.runtime.live.views import swaps

PASSES = 16
"""The graphs of so many backward passes are walked: later ones are computed in the same way."""
_CHAIN = 16
"""So many operations are gone back from a product or a loss."""
KEEPS = frozenset({"ToCopy", "MaskedFill", "Clone", "NativeDropout", "FusedDropout", "Alias"})
"""Operations whose output is their first input, element by element, or zero in its place."""
_BY_CONSTANT = frozenset({"Mul", "Div"})
"""Operations that keep the order of elements. Of two factors with a graph neither is the other's scale."""
RESHAPES = frozenset({"View", "UnsafeView", "ReshapeAlias", "Expand", "Squeeze", "Unsqueeze"})
REORDERS = frozenset({"Transpose", "Permute", "T"})
MATRIX_PRODUCTS = frozenset({"Bmm", "Mm"})
_PICKS = frozenset({"Slice", "Select", "Index", "IndexSelect", "BackwardHookFunction"})
_ROWS = frozenset({"Slice", "Index", "IndexSelect"})
"""Operations that pick rows, so that the other dimensions stay."""
_VIEWS = frozenset({"View", "UnsafeView", "ReshapeAlias"})
_SHIFTS = frozenset({"Slice", "Cat", "ConstantPadNd"})
"""Before a view, or as a slice after it, they shift the rows of a matrix against each other, as scores of relative positions are."""
_FOLDS = frozenset({"Mean", "Sum"})
_PARTS = frozenset({"Split", "SplitWithSizes", "Unbind", "Chunk"})
_PROJECTIONS = frozenset({"Addmm", "Mm"})
"""Operations that compute queries and keys of a layer's inputs."""
_MASKS = frozenset({"Add", "Sub", "Where"})
"""Operations that hide some scores and leave the others, or add a bias to them."""
_UNSEEN = KEEPS - {"MaskedFill", "NativeDropout", "FusedDropout"} | RESHAPES | REORDERS | _PICKS
"""Operations that compute no new values."""


def made_by(value: torch.Tensor) -> str:
    """The operation that computed the values of a tensor, such as `softmax`; empty without a graph."""
    node = value.grad_fn
    for _ in range(_CHAIN):
        if node is None or operation_of(node) not in _UNSEEN:
            break
        node = _first_input(node)
    if node is None:
        return ""
    return snake_case(operation_of(node))


def over_classes(value: torch.Tensor) -> bool | None:
    """Whether the log-softmax that computed `[n, classes, ...]` sums over the classes; None where it cannot be told."""
    return _sums_over(value, 1)


def over_labels(value: torch.Tensor) -> bool | None:
    """The same of `[..., labels]`."""
    return _sums_over(value, value.dim() - 1)


def _sums_over(value: torch.Tensor, dim: int) -> bool | None:
    node: Any = value.grad_fn
    for _ in range(_CHAIN):
        if node is None or not node._input_metadata:
            return None
        shape = shape_of(node)
        if operation_of(node) == "LogSoftmax":
            return signed(node._saved_dim) % len(shape) == dim
        following = _only_input(node)
        if following is None:
            return None
        before = _dim_before(node, operation_of(node), shape, shape_of(following), dim)
        if before is None:
            return None
        node, dim = following, before
    return None


class LossGraphs:
    """Walks the graphs of the first losses.

    `is_held` says whether a model or an optimizer holds a parameter, `is_attribute` whether a tensor is an attribute of a module.
    """

    def __init__(
        self,
        is_held: Callable[[torch.Tensor], bool],
        is_attribute: Callable[[torch.Tensor], bool],
    ) -> None:
        self._is_held = is_held
        self._is_attribute = is_attribute
        self._views = 0
        self._softmaxes = 0
        self._loose = 0
        self._scores = 0
        self._squares = 0
        self._seen: dict[int, tuple[weakref.ref[torch.Tensor], torch.Tensor]] = {}
        """Loose parameters, with copies of their values in the pass before."""

    def softmax_dims(self, losses: Any) -> list[int] | None:
        """Along which dimension, counted from the end, softmaxes sum to one that weigh rows.

        Each is the left factor, a batch of square matrices, of a product: the sums of its rows are the sums of the
        weights. None after the first passes.
        """
        if self._softmaxes >= PASSES:
            return None
        self._softmaxes += 1
        return [
            dim
            for operation, node in nodes(losses)
            if operation in MATRIX_PRODUCTS
            for _, _, dim in weighing_softmaxes(node)
        ]

    def unscaled_scores(self, losses: Any) -> int | None:
        """How many softmaxes that weigh rows have scores that are products of projections as they are.

        None after the first passes.
        """
        if self._scores >= PASSES:
            return None
        self._scores += 1
        return sum(
            _is_unscaled(_first_input(softmax))
            for operation, node in nodes(losses)
            if operation in MATRIX_PRODUCTS
            for _, softmax, _ in weighing_softmaxes(node)
        )

    def swapping_views(self, losses: Any) -> list[str] | None:
        """The shapes before and after each view that stands where a transpose was meant. None after the first passes."""
        if self._views >= PASSES:
            return None
        self._views += 1
        found = nodes(losses)
        sliced = {
            following
            for operation, node in found
            if operation == "Slice"
            for following, _ in node.next_functions
        }
        views = [node for operation, node in found if operation in _VIEWS and node not in sliced]
        moved = (shapes for node in views if node._input_metadata and (shapes := _moved(node)))
        return [f"{list(before)} -> {list(after)}" for before, after in moved]

    def stretched_squares(self, losses: Any) -> list[str] | None:
        """The shapes before and after each column that was stretched to a square of differences, whose squares were averaged.

        `[n, 1]` less `[n]` has the differences of each with each. What was taken off has no graph. None after the first passes.
        """
        if self._squares >= PASSES:
            return None
        self._squares += 1
        return [
            f"{list(before)} -> {list(after)}"
            for operation, node in nodes(losses)
            if operation in _FOLDS
            for before, after in _stretched(_squared(_first_input(node)))
        ]

    def loose_parameters(self, losses: Any) -> list[torch.Size] | None:
        """The shapes of parameters that neither a model nor an optimizer holds, and that stayed as they were since the pass before.

        A single number with a gradient is a parameter, and so is an attribute of a module, whatever its class. Other tensors with
        gradients are inputs. None after the first passes.
        """
        if self._loose >= PASSES:
            self._seen.clear()
            return None
        self._loose += 1
        shapes = []
        for operation, node in nodes(losses):
            leaf = node.variable if operation == "AccumulateGrad" else None
            if not isinstance(leaf, torch.Tensor) or self._is_held(leaf):
                continue
            is_parameter = isinstance(leaf, nn.Parameter) or leaf.numel() == 1
            if not is_parameter and not self._is_attribute(leaf):
                continue
            part = local_part(leaf)
            if part is None:
                continue
            known = self._seen.get(id(leaf))
            if known is not None and known[0]() is leaf and torch.equal(known[1], part):
                shapes.append(leaf.shape)
            self._seen[id(leaf)] = (weakref.ref(leaf), part.clone())
        return shapes


def weighing_softmaxes(product: Any) -> Iterator[tuple[int, Any, int]]:
    """The softmaxes whose rows one of the `MATRIX_PRODUCTS` multiplies.

    Each comes after the place of the factor that it is, and before its dimension, counted from the end.
    """
    for factor, last, other in ((0, -1, -2), (1, -2, -1)):
        found = _softmax_of(product.next_functions[factor][0], last, other)
        if found is not None:
            yield factor, *found


def _moved(view: Any) -> tuple[Sequence[int], Sequence[int]] | None:
    """The shapes before and after a view, if it has that of a transpose, or takes back the shape and not the order of one before."""
    source, after = _first_input(view), shape_of(view)
    before = tuple(view._saved_self_sym_sizes)
    if not _is_shifted(source) and swaps(before, after):
        return before, after
    if source is not None and operation_of(source) == "Clone":
        source = _first_input(source)
    if source is None or operation_of(source) not in REORDERS:
        return None
    first = _first_input(source)
    is_back = first is not None and first._input_metadata and shape_of(first) == after != before
    return (before, after) if is_back else None


def _squared(node: Any) -> Any:
    """What a node is the square of; None if it is none."""
    if node is None:
        return None
    if operation_of(node) == "Pow":
        return _first_input(node) if node._saved_exponent == 2 else None
    factors = [each for each, _ in node.next_functions]
    is_square = operation_of(node) == "Mul" and len(factors) == 2 and factors[0] is factors[1]
    return factors[0] if is_square else None


def _stretched(difference: Any) -> Iterator[tuple[Sequence[int], Sequence[int]]]:
    """The shapes of a column and of the square that a difference makes of it, whose other side has no graph."""
    column = None if difference is None else _only_input(difference)
    if column is None or operation_of(difference) != "Sub" or not difference._input_metadata:
        return
    before, after = shape_of(column), shape_of(difference)
    if len(after) == 2 and after[0] == after[1] > 1 and before == (after[0], 1):
        yield before, after


def _is_shifted(node: Any) -> bool:
    return node is not None and operation_of(node) in _SHIFTS


def _is_unscaled(scores: Any) -> bool:
    """Whether scores of attention are a product of two projections that nothing multiplies, divides or normalises."""
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
    waiting = [each.grad_fn for each in tensors_in(losses) if each.grad_fn is not None]
    seen = set(waiting)
    found = []
    while waiting:
        node = waiting.pop()
        found.append((_operation(node.name()), node))
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)
    return found


def operation_of(node: Any) -> str:
    """The name of what it is the derivative of: `Softmax` of `SoftmaxBackward0`."""
    return _operation(node.name())


@cache
def _operation(name: str) -> str:
    """The same of a node's name, taken apart once: a graph has hundreds of nodes of a dozen names."""
    return name.rpartition("::")[2].rstrip("0123456789").removesuffix("Backward")


def snake_case(operation: str) -> str:
    """The name of an operation as torch's functions are named: `max_pool2d` of `MaxPool2D`."""
    return re.sub("(?<=[a-z0-9])(?=[A-Z])", "_", re.sub("(?<=[0-9])D", "d", operation)).lower()


def _first_input(node: Any) -> Any:
    return node.next_functions[0][0] if node.next_functions else None


def _only_input(node: Any) -> Any:
    """The node of the only input that has a graph, None of several or none."""
    following = [each for each, _ in node.next_functions if each is not None]
    return following[0] if len(following) == 1 and following[0]._input_metadata else None


def shape_of(node: Any) -> Sequence[int]:
    """Of what it computed."""
    return tuple(node._input_metadata[0].shape)


def _softmax_of(node: Any, last: int, other: int) -> tuple[Any, int] | None:
    """The softmax that computed a factor of a product, and its dimension, counted from the end.

    `last` and `other` are the dimensions of the factor, those that the product sums over and keeps. They have to be the
    last and the second-last of a batch of square matrices, as the softmax has it.
    """
    for _ in range(_CHAIN):
        if node is None or not node._input_metadata:
            return None
        shape, operation = shape_of(node), operation_of(node)
        if operation in ("Softmax", "SafeSoftmax"):
            size = len(shape)
            own = signed(node._saved_dim)
            is_square = size >= 3 and shape[-1] == shape[-2] > 1
            straight = (last % size, other % size) == (size - 1, size - 2)
            return (node, own % size - size) if is_square and straight else None
        following = _only_input(node)
        if following is None:
            return None
        before = shape_of(following)
        dims = [
            _dim_before(node, operation, shape, before, dim % len(shape)) for dim in (last, other)
        ]
        if None in dims:
            return None
        last, other = dims  # type: ignore[assignment]
        node = following
    return None


def _dim_before(
    node: Any, operation: str, shape: Sequence[int], before: Sequence[int], dim: int
) -> int | None:
    """The dimension of an operation's input that became one of its output; None if none did."""
    if operation in KEEPS or operation in _BY_CONSTANT:
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
    """How many rows what it computed has, in all batches."""
    return _product(shape_of(node)[:-1])


def _same_stride(shape: Sequence[int], before: Sequence[int], dim: int) -> int | None:
    """The dimension of as many elements, after which as many elements lie."""
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
    """torch shows a negative dimension as an unsigned number of 64 bits."""
    return value - 2**64 if value >= 2**63 else value
