"""Inputs of models whose own gradients a backward pass computes, as an attack on a model does."""

from __future__ import annotations

import torch
from torch import nn

from tspec.runtime.live.convert import tensors_in
from tspec.runtime.live.module_tree import has_parameters

NODES = 32
"""The number of operations before an input that are looked at."""


def differentiates_inputs(module: nn.Module, inputs: object) -> bool:
    """True if a model with parameters gets an input that is made of a leaf with a gradient, and of no
    parameter. Outputs of another model are made of its parameters.
    """
    return any(map(_is_of_a_leaf, tensors_in(inputs))) and has_parameters(module)


def _is_of_a_leaf(tensor: torch.Tensor) -> bool:
    if tensor.grad_fn is None:
        return tensor.requires_grad and not isinstance(tensor, nn.Parameter)
    nodes = [tensor.grad_fn]
    found = False
    for node in nodes:
        for before, _ in node.next_functions:
            leaf = getattr(before, "variable", None)
            if isinstance(leaf, nn.Parameter):
                return False
            found |= leaf is not None
            if before is not None and leaf is None and len(nodes) < NODES:
                nodes.append(before)
    return found
