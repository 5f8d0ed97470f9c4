"""Marks nodes of autograd graphs, so that what computed a tensor is found again in the graph of a loss."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import torch

T = TypeVar("T")


class Mark(Generic[T]):
    """A value for each marked node, kept in the metadata of the node. So it lives as long as the graph, and
    keeps nothing alive.
    """

    def __init__(self, name: str) -> None:
        self._key = f"tspec {name}"

    def put(self, result: torch.Tensor, value: T) -> None:
        """Mark the node that computed a tensor, if it has a graph."""
        node: Any = result.grad_fn
        if node is not None:
            node.metadata[self._key] = value

    def of(self, node: Any) -> T | None:
        """The value of a node; None if it is not marked. Nodes of custom functions may have no metadata."""
        value: T | None = getattr(node, "metadata", {}).get(self._key)
        return value

    def on(self, node: Any) -> bool:
        """True if a node is marked."""
        return self.of(node) is not None
