"""What a wrong tensor has to do with the right one."""

from __future__ import annotations

from torch import Tensor


def evidence(reference: Tensor, candidate: Tensor, limit: float) -> str:
    """What is known of a difference: float64 tensors of one shape; empty if nothing is.

    A relation holds if what is left of the difference has a Frobenius norm of at most `limit`.
    """
    if not bool(reference.isfinite().all()):
        return "the reference is not finite"
    if not bool(candidate.isfinite().all()):
        return "the candidate is not finite"
    square = float((reference * reference).sum())
    factor = float((reference * candidate).sum()) / square if square else 0.0
    if not bool(candidate.any()):
        return "the candidate is zero"
    if factor and float((candidate - factor * reference).norm()) <= limit * max(abs(factor), 1):
        return f"the candidate is {factor:.4g} times the reference"
    apart = candidate.flatten().sort()[0] - reference.flatten().sort()[0]
    if float(apart.norm()) <= limit:
        return "the candidate has the same numbers in another order"
    return ""
