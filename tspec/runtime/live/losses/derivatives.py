"""Derivatives that a loss is computed of, without a graph of their own."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from tspec.runtime.live.convert import tensors_in
from tspec.runtime.live.losses.graph import operation_of


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


def _are_samples(output: torch.Tensor) -> bool:
    """True of values of several samples, and of their sum."""
    if output.numel() > 1:
        return True
    return output.grad_fn is not None and operation_of(output.grad_fn) == "Sum"
