"""Features of one tensor, and of several tensors taken as one, from the recorded features of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tspec.builtin.features import DOTTED, FEATURES
from tspec.builtin.numbers import as_float, ratio
from tspec.runtime.edges import Missing, StateSource
from tspec.runtime.folds import fold_list
from tspec.runtime.reading import of_difference
from tspec.runtime.tensors import TensorSample, recorded
from tspec.runtime.values import (
    ABSENT,
    NO_HISTORY,
    NOT_RECORDED,
    conjunction,
    is_number,
)
from tspec.values import Datum


def feature(tensor: Datum, name: str) -> Datum:
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


def _as_one(tensors: Sequence[Datum], name: str) -> Datum:
    if name == "finite":
        finite = [
            each.features.get(name, NOT_RECORDED)
            if each.__class__ is TensorSample
            else feature(each, name)
            for each in tensors
        ]
        return conjunction(finite)
    if name == "zeros":
        return _zeros(tensors)
    if name == "mean":
        return _mean(tensors)
    if name == "std" or "/" in name or "@" in name:
        return next((t for t in tensors if t.__class__ is Missing), NOT_RECORDED)
    values = _recorded(tensors, name)
    if isinstance(values, Missing):
        return values
    if name == "digest":
        return combine_digests(values)
    if name == "norm":
        return _norm(values)
    return fold_list(str(FEATURES[name].many), values)


def _recorded(tensors: Sequence[Datum], name: str) -> list[Any] | Missing:
    """A feature of each tensor as the source gave it, or why the first that is missing is. A model has hundreds.

    The feature decides the type of the values.
    """
    values: list[Any] = []
    for tensor in tensors:
        if tensor.__class__ is not TensorSample:
            return tensor if tensor.__class__ is Missing else NOT_RECORDED
        value = tensor.features.get(name, NOT_RECORDED)
        if value.__class__ is Missing:
            return value
        values.append(value)
    return values


def _norm(norms: Sequence[float]) -> float:
    total = 0.0
    for norm in norms:
        length = norm if norm.__class__ is float else as_float(norm)
        total += length * length
    return math.sqrt(total)


def _zeros(tensors: Sequence[Datum]) -> Datum:
    zeros, numels = _recorded(tensors, "zeros"), _recorded(tensors, "numel")
    if isinstance(zeros, Missing):
        return zeros
    if isinstance(numels, Missing):
        return numels
    total = sum(numels)
    return ratio(as_float(sum(zeros)), as_float(total)) if total else 0.0


def _mean(tensors: Sequence[Datum]) -> Datum:
    sums, numels = _recorded(tensors, "sum"), _recorded(tensors, "numel")
    if isinstance(sums, Missing):
        return sums
    if isinstance(numels, Missing):
        return numels
    if not tensors:
        return NO_HISTORY
    total = fold_list("sum", sums)
    return ratio(as_float(total), as_float(sum(numels))) if is_number(total) else NOT_RECORDED


def combine_digests(digests: Sequence[int]) -> int:
    """One signed 64-bit digest of an ordered list of digests."""
    mixed = 0x9E3779B97F4A7C15
    for digest in digests:
        mixed = ((mixed ^ (digest & 0xFFFFFFFFFFFFFFFF)) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return mixed - (1 << 64) if mixed >= 1 << 63 else mixed


def cast_feature(tensor: Datum, dtype: Datum, name: str) -> Datum:
    """A feature of a tensor as it would be in another dtype: only where the source gave it."""
    if tensor.__class__ is Missing:
        return tensor
    if dtype.__class__ is Missing:
        return dtype
    if name == "zeros":
        return NOT_RECORDED
    return recorded(tensor, f"{name}@{str(dtype).removeprefix('torch.')}")


def difference_feature(source: StateSource, left: Datum, right: Datum, name: str) -> Datum:
    """A feature of the difference of two tensors, in a running job only."""
    for tensor in (left, right):
        if tensor.__class__ is Missing:
            return tensor
    elements = _elements(left), _elements(right)
    for one in elements:
        if one.__class__ is Missing:
            return one
    return of_difference(source, *elements, name)


def _elements(tensor: Datum) -> Datum:
    """The tensor itself, or the copy made at the instant of reading."""
    copy = recorded(tensor, "@copy")
    return recorded(tensor, "@itself") if copy is NOT_RECORDED else copy
