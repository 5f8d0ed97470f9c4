"""Relates a wrong tensor to the right one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

FaultClass = Literal[
    "unknown", "missing reduction", "wrong scale", "wrong layout", "stale", "zero", "not finite"
]


@dataclass(frozen=True, slots=True)
class Evidence:
    """The suggested kind of a fault, and the evidence in words; empty if there is none."""

    suggests: FaultClass = "unknown"
    says: str = ""
    factor: float | None = None
    """The candidate as a multiple of the reference."""


NONE = Evidence()
CLEARLY = 30
"""The factor by which sorted tensors must be closer to count as a permutation. Any two tensors of
one distribution are somewhat closer when sorted.
"""


def multiple(reference: Tensor, candidate: Tensor, limit: float) -> float | None:
    """The factor from the reference to a tensor, if the tensor is a multiple of it within `limit`.
    None otherwise, and for a factor of zero.
    """
    square = float((reference * reference).sum())
    factor = float((reference * candidate).sum()) / square if square else 0.0
    is_multiple = float((candidate - factor * reference).norm()) <= limit * max(abs(factor), 1)
    return factor if factor and is_multiple else None


def times(factor: float) -> str:
    """A factor with four digits, with more if these would say that it is 1."""
    said = f"{factor:.4g}"
    return f"{factor:.9g}" if said == "1" else said


def evidence(
    reference: Tensor,
    candidate: Tensor,
    limit: float,
    earlier: Mapping[str, Tensor],
    sketched: bool = False,
) -> Evidence:
    """The evidence in a difference of two float64 tensors of one shape, or of two sketches.
    Sketches show no permutation.

    `earlier` has the reference's tensors of that name from other steps and micro-batches. A
    relation holds if the rest of the difference has a Frobenius norm of at most `limit`.
    """
    if not bool(reference.isfinite().all()):
        return Evidence("not finite", "the reference is not finite")
    if not bool(candidate.isfinite().all()):
        return Evidence("not finite", "the candidate is not finite")
    if not bool(candidate.any()):
        return Evidence("zero", "the candidate is zero")
    for when, tensor in earlier.items():
        if float((candidate - tensor).norm()) <= limit:
            return Evidence("stale", f"the candidate is the reference of {when}")
    factor = multiple(reference, candidate, limit)
    if factor is not None and reference.numel() == 1:  # any number is a multiple of any other
        return Evidence(factor=factor)
    if factor is not None:
        says = f"the candidate is {times(factor)} times the reference"
        return Evidence("wrong scale", says, factor)
    if sketched:
        return NONE
    apart = float((candidate.flatten().sort()[0] - reference.flatten().sort()[0]).norm())
    if apart <= limit and apart * CLEARLY <= float((candidate - reference).norm()):
        return Evidence("wrong layout", "the candidate has the same numbers in another order")
    return NONE
