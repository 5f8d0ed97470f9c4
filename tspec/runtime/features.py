"""Features of a tensor, and of many tensors as one, from what was read of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tspec.builtin.features import DOTTED, FEATURES
from tspec.builtin.numbers import as_float, ratio
from tspec.runtime.edges import Missing, StateSource
from tspec.runtime.folds import fold_list
from tspec.runtime.reading import of_change
from tspec.runtime.tensors import TensorSample, recorded
from tspec.runtime.values import (
    ABSENT,
    NO_HISTORY,
    NOT_RECORDED,
    conjunction,
    first_missing,
    is_number,
)


def feature(tensor: Any, name: str) -> Any:
    """A feature of a tensor, or of a list of tensors as one tensor."""
    if tensor.__class__ is TensorSample:
        if name == "zeros":
            return _zeros((tensor,))
        return tensor.features.get(name, NOT_RECORDED)
    if tensor.__class__ is Missing:
        return tensor
    if isinstance(tensor, dict):
        tensor = tuple(tensor.values())
    if isinstance(tensor, tuple):
        present = [item for item in tensor if item is not ABSENT]
        if name in DOTTED:
            return tuple(feature(item, name) for item in present)
        return _as_one(present, name)
    if name == "finite" and is_number(tensor):
        return math.isfinite(tensor)
    return NOT_RECORDED


def _as_one(tensors: Sequence[Any], name: str) -> Any:
    if name == "finite":
        return conjunction(feature(tensor, name) for tensor in tensors)
    if name == "zeros":
        return _zeros(tensors)
    if name == "mean":
        return _mean(tensors)
    if name == "std" or "/" in name or "@" in name:
        return next((t for t in tensors if t.__class__ is Missing), NOT_RECORDED)
    values = [recorded(tensor, name) for tensor in tensors]
    why = first_missing(values)
    if why is not None:
        return why
    if name == "digest":
        return combine_digests(values)
    if name == "norm":
        return math.sqrt(_sum(as_float(value) * as_float(value) for value in values))
    return fold_list(str(FEATURES[name].many), values)


def _sum(values: Any) -> float:
    total = 0.0
    for value in values:
        total += value
    return total


def _zeros(tensors: Sequence[Any]) -> Any:
    zeros = [recorded(tensor, "zeros") for tensor in tensors]
    numels = [recorded(tensor, "numel") for tensor in tensors]
    why = first_missing([*zeros, *numels])
    if why is not None:
        return why
    total = sum(numels)
    return ratio(as_float(sum(zeros)), as_float(total)) if total else 0.0


def _mean(tensors: Sequence[Any]) -> Any:
    sums = [recorded(tensor, "sum") for tensor in tensors]
    numels = [recorded(tensor, "numel") for tensor in tensors]
    why = first_missing([*sums, *numels])
    if why is not None:
        return why
    if not tensors:
        return NO_HISTORY
    return ratio(as_float(fold_list("sum", sums)), as_float(sum(numels)))


def combine_digests(digests: Sequence[int]) -> int:
    """One signed 64-bit digest of an ordered list of digests."""
    mixed = 0x9E3779B97F4A7C15
    for digest in digests:
        mixed = ((mixed ^ (digest & 0xFFFFFFFFFFFFFFFF)) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return mixed - (1 << 64) if mixed >= 1 << 63 else mixed


def cast_feature(tensor: Any, dtype: Any, name: str) -> Any:
    """A feature of a tensor as it would be in another dtype: only where the source gave it."""
    if tensor.__class__ is Missing:
        return tensor
    if dtype.__class__ is Missing:
        return dtype
    if name == "zeros":
        return NOT_RECORDED
    return recorded(tensor, f"{name}@{str(dtype).removeprefix('torch.')}")


def change_feature(source: StateSource, before: Any, after: Any, name: str) -> Any:
    """A feature of what a window did to a tensor: only in a running job."""
    for tensor in (after, before):
        if tensor.__class__ is Missing:
            return tensor
    old, new = recorded(before, "@copy"), recorded(after, "@itself")
    for one in (new, old):
        if one.__class__ is Missing:
            return one
    return of_change(source, old, new, name)
