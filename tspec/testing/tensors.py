"""A tensor from the features that a script sets; the others have default values.

By default a tensor is float32 on the CPU with 10,000 elements, all finite, none zero, of norm 1.
Features that follow from the set ones agree with them: a norm of NaN makes the tensor not finite,
and a norm of zero makes all elements zero.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from tspec.builtin.features import FEATURES
from tspec.trace.model import Tensor

NUMEL = 10_000
"""Enough elements for a fraction of zeros in hundredths of a percent."""


def digest_of(*where: object) -> int:
    """The digest of new contents, made from the place in the script and the step."""
    return int.from_bytes(blake2b(repr(where).encode(), digest_size=8).digest(), "big", signed=True)


def tensor(said: Mapping[str, Any], fresh: int, number: int) -> Tensor:
    """The tensor with these features.

    `fresh` is its digest if none is given, `number` its object.
    """
    numel = _numel(said)
    norm = said.get("norm")
    finite = all(
        row.is_finite(said[row.name])
        for row in FEATURES.values()
        if row.is_finite is not None and row.name in said
    )
    zeros = said.get("zeros", 1.0 if norm == 0 else 0.0)
    if norm is None:
        norm = (0.0 if zeros == 1 else 1.0) if said.get("finite", finite) else math.nan
    features: dict[str, Any] = {
        "digest": fresh, "finite": finite, "dtype": "float32", "device": "cpu",
        "memory_format": "contiguous_format", "requires_grad": False,
        **said,
        "norm": norm, "numel": numel, "zeros": round(zeros * numel),
        "shape": said.get("shape", (numel,)), "object": number,
    }  # fmt: skip
    return Tensor(**features)


def _numel(said: Mapping[str, Any]) -> int:
    if "numel" in said:
        return int(said["numel"])
    return math.prod(said["shape"]) if "shape" in said else NUMEL
