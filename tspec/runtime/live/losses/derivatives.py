"""Derivatives that a loss is computed of: those without a graph of their own, and norms of them."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from tspec.runtime.live.convert import tensors_in
from tspec.runtime.live.losses.graph import (
    KEEPS,
    NORMS,
    RESHAPES,
    first_input,
    last_nodes,
    nodes,
    operation_of,
    preceding,
    reached,
    shape_of,
)

_DIFFERENCES = frozenset({"Sub", "Rsub"})
_SQUARES = frozenset({"Pow", "Mul"})


def lacks_graph(outputs: Any, inputs: Any, create_graph: Any) -> bool:
    """True if a derivative of samples with respect to data gets no graph.

    The gradient of a loss, such as that of an attack, is no derivative of samples.
    """
    if create_graph or not torch.is_grad_enabled():
        return False
    data = tensors_in(inputs)
    are_data = bool(data) and all(
        each.is_leaf and not isinstance(each, nn.Parameter) for each in data
    )
    return are_data and all(map(_are_samples, tensors_in(outputs)))


class DifferentiableDerivatives:
    """Derivatives that have a graph, so that a loss of them can be trained, and what is computed of them.

    Nodes are known by their sequence numbers: to hold them would keep their graphs alive.
    """

    def __init__(self) -> None:
        self._numbers: set[int] = set()

    def has_graph(self, result: Any) -> bool:
        """True if a derivative has a graph."""
        numbers = {node._sequence_nr() for node in last_nodes(result)}
        self._numbers |= numbers
        return bool(numbers)

    def ends_derivatives(self, outputs: Any, create_graph: Any) -> bool:
        """True if a derivative without a graph is one of what was computed of such a derivative."""
        return not create_graph and self.uses_derivatives(outputs)

    def uses_derivatives(self, outputs: Any) -> bool:
        """True if tensors were computed of such a derivative."""
        return bool(self._numbers) and any(
            node._sequence_nr() in self._numbers for node in reached(last_nodes(outputs))
        )


def is_of_parameters(inputs: Any) -> bool:
    """True if a derivative is one with respect to parameters, and not to data."""
    return any(isinstance(each, nn.Parameter) for each in tensors_in(inputs))


def whole_norms(losses: Any) -> list[str]:
    """The shape of each tensor of several rows whose norm over all elements is compared with a number, as in
    `(norm - 1) ** 2`.
    """
    norms = (
        preceding(first_input(node), KEEPS | RESHAPES)
        for operation, node in nodes(losses)
        if operation in _DIFFERENCES
        and sum(each is not None for each, _ in node.next_functions) == 1
    )
    shapes = (_normed(node) for node in norms if node is not None and _shape(node) == ())
    return [str(list(shape)) for shape in shapes if len(shape) > 1 and shape[0] > 1]


def _normed(norm: Any) -> tuple[int, ...]:
    """The shape of what a norm is taken of; no dimensions of other nodes."""
    if operation_of(norm) in NORMS:
        return _shape(first_input(norm)) or ()
    if operation_of(norm) != "Sqrt":
        return ()
    summed = preceding(first_input(norm), KEEPS | RESHAPES | {"Add"})  # `sqrt(sum + eps)`
    if summed is None or operation_of(summed) != "Sum":
        return ()
    square = first_input(summed)
    return _shape(square) or () if operation_of(square) in _SQUARES else ()


def _shape(node: Any) -> tuple[int, ...] | None:
    """The shape of a node's output; None if the node does not tell it."""
    return shape_of(node) if node._input_metadata else None


def _are_samples(output: torch.Tensor) -> bool:
    """True of values of several samples, and of their sum."""
    if output.numel() > 1:
        return True
    return output.grad_fn is not None and operation_of(output.grad_fn) == "Sum"
