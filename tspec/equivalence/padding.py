"""The real sizes of tensors that a reference pads, as plain values that can be handed to a job.

A reference has all of each tensor. Its job may have padded a dimension, to a size of its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

from tspec.equivalence.recording import TensorName


@dataclass(frozen=True, slots=True)
class RealSizes:
    """The real size of each dimension that a place of a layout pads; None for other dimensions.

    `kind` is a word of `compare`, `pattern` the regular expression of the names that have the
    place. `sizes` is None for tensors that are padded like the parameter of their name.
    """

    kind: str
    pattern: str
    sizes: tuple[int | None, ...] | None


def real_shape(
    places: Sequence[RealSizes], name: TensorName, shape: tuple[int, ...]
) -> tuple[int, ...]:
    """The shape of a tensor without its padding. The first place that fits the name counts."""
    sizes = _sizes(places, name.kind, name.subject)
    if len(sizes) != len(shape):
        return shape
    return tuple(
        size if real is None else min(size, real) for size, real in zip(shape, sizes, strict=True)
    )


def real_part(places: Sequence[RealSizes], name: TensorName, tensor: Tensor) -> Tensor:
    """The view of a tensor without its padding."""
    shape = tuple(tensor.shape)
    real = real_shape(places, name, shape)
    return tensor if real == shape else tensor[tuple(map(slice, real))]


def _sizes(places: Sequence[RealSizes], kind: str, subject: str) -> tuple[int | None, ...]:
    for each in places:
        if each.kind == kind and re.fullmatch(each.pattern, subject):
            return _sizes(places, "params", subject) if each.sizes is None else each.sizes
    return ()
