"""Finds products and distances of vectors whose norms were taken along another dimension than the
product, or the distance, sums over.

The product of two unit vectors is their cosine similarity, which their distance also shows. A vector
divided by norms over the samples of the batch, or over the steps of a sequence, is no unit vector.

A softmax of similarities gives the best of n at most `e^2 / (e^2 + n - 1)`. This is why they are
divided by a temperature, mostly from 0.05 to 0.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tspec.runtime.live.losses.graph import (
    KEEPS,
    MATRIX_PRODUCTS,
    NORMS,
    REORDERS,
    RESHAPES,
    SCALES,
    along,
    first_input,
    nodes,
    operation_of,
    preceding,
    saved,
    scaled_input,
    shape_of,
    signed,
)

_DISTANCES = frozenset({"Cdist", "EuclideanDist"})
_AROUND_NORMS = frozenset({"Expand", "ClampMin", "Clamp", "Add", "Unsqueeze"})
_AROUND_DIFFERENCES = frozenset({"Add"})
"""A distance may have a small number added to each difference."""
_SOFTMAXES = frozenset({"LogSoftmax", "Logsumexp"})
"""The softmaxes of losses, and not those of attention."""
_AROUND_SCORES = (
    KEEPS | RESHAPES | REORDERS | {"CopySlices", "Add", "Sub", "Where", "Cat", "Index", "Slice"}
)
"""Operations that hide some scores, add a bias or lay them out otherwise."""


def crossed_norms(losses: Any) -> list[str]:
    """The shape of a vector of each product, or distance, that sums over another dimension than the norms which
    the vector was divided by. Both vectors were divided by norms.
    """
    found = (_crossed(_compared(operation, node)) for operation, node in nodes(losses))
    return [str(list(shape)) for shape in found if shape is not None]


def blunt_similarities(losses: Any) -> list[float]:
    """For each softmax of a loss over similarities of unit vectors that are multiplied by a number
    below one: this number. A number that is learned is left out.
    """
    found = (_factor(node) for operation, node in nodes(losses) if operation in _SOFTMAXES)
    return [factor for factor in found if factor is not None and 0 < factor < 1]


def _factor(softmax: Any) -> float | None:
    """What the similarities of unit vectors are multiplied by before a softmax; None of other scores."""
    node = preceding(first_input(softmax), _AROUND_SCORES)
    if node is None or operation_of(node) not in SCALES:
        return None
    product = preceding(first_input(node), KEEPS | RESHAPES | REORDERS)
    other = saved(node, "other")
    if product is None or operation_of(product) not in MATRIX_PRODUCTS or other is None:
        return None
    factors = [_divided(product.next_functions[place][0], dim) for place, dim in ((0, -1), (1, -2))]
    if other.numel() != 1 or other.requires_grad or not all(each and each[1] for each in factors):
        return None
    number = float(other)
    return number if operation_of(node) == "Mul" else 1 / number if number else None


_Compared = Sequence[tuple[Any, int]]
"""Nodes of vectors that are compared, each with the dimension that is summed over."""


def _compared(operation: str, node: Any) -> _Compared:
    """The two inputs of a product or a distance; none of other operations."""
    if operation in MATRIX_PRODUCTS:
        return [(node.next_functions[0][0], -1), (node.next_functions[1][0], -2)]
    if operation in _DISTANCES:
        return [(following, -1) for following, _ in node.next_functions]
    if operation not in NORMS:
        return []
    difference = preceding(first_input(node), _AROUND_DIFFERENCES)
    dims = getattr(node, "_saved_dim", None)
    if difference is None or operation_of(difference) != "Sub" or not dims or len(dims) != 1:
        return []
    return [(following, signed(dims[0])) for following, _ in difference.next_functions]


def _crossed(compared: _Compared) -> tuple[int, ...] | None:
    """The shape of the first vectors that were divided by norms along other dimensions, if both were divided by norms."""
    match [_divided(node, dim) for node, dim in compared]:
        case [(shape, False), (_, _)] | [(_, True), (shape, False)]:
            return shape
    return None


def _divided(node: Any, dim: int) -> tuple[tuple[int, ...], bool] | None:
    """The shape of a factor before its division by its norms, and whether the norms are taken along
    the dimension that became `dim`.

    None if it was not divided by norms, or if it is a parameter, whose rows and columns may have
    any length.
    """
    for each, shape, at in along(node, dim, scaled_input):
        norms = _norms(each)
        if norms is not None:
            return shape, norms[at] != shape[at]
    return None


def _norms(node: Any) -> tuple[int, ...] | None:
    """The shape of the norms that a node divides something computed by, which are its own; None of other nodes."""
    if operation_of(node) != "Div" or len(node.next_functions) != 2:
        return None
    divided, by = (following for following, _ in node.next_functions)
    norm = preceding(by, _AROUND_NORMS)
    if norm is None or operation_of(norm) not in NORMS or first_input(norm) is not divided:
        return None
    if divided is None or operation_of(divided) == "AccumulateGrad":
        return None
    if operation_of(by) == "Expand":
        by = first_input(by)
    norms = shape_of(by)
    return norms if len(norms) == len(shape_of(node)) else None
