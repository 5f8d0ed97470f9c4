"""Reads from the graph whether dropout computed a tensor."""

from __future__ import annotations

from typing import Any

import torch

from tspec.runtime.live.losses.graph import KEEPS, RESHAPES, operation_of, preceding, saved

_DROPOUT = frozenset({"NativeDropout", "FusedDropout"})
_UNSEEN = KEEPS - _DROPOUT | RESHAPES
"""Operations that compute no new values."""


def is_dropped(value: torch.Tensor) -> bool | None:
    """True if dropout computed a tensor: on a CPU, a product with zeros and one number above 1. None without a graph."""
    if value.grad_fn is None:
        return None
    node = preceding(value.grad_fn, _UNSEEN)
    return node is not None and _drops(node)


def _drops(node: Any) -> bool:
    if operation_of(node) in _DROPOUT:
        return True
    noise = saved(node, "other") if operation_of(node) == "Mul" else None
    if noise is None or noise.numel() < 2 or not noise.is_floating_point():
        return False
    largest = noise.max()
    return bool((largest > 1) & ((noise == 0) | (noise == largest)).all() & (noise == 0).any())
