"""Finds gradients that are wrong only because they were clipped by a wrong norm. Another gradient makes the norm wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from math import hypot, inf

from tspec.equivalence.compare import Fault, TensorComparison
from tspec.equivalence.recording import TensorName

EXACTLY = 30
"""The least ratio of the factor's distance from 1 to its distance from the factor that clipping
leaves. Then the two factors count as equal.
"""
ERRORS = 4
"""The largest error of an estimated norm, in standard errors."""


def clipped(
    comparisons: Sequence[TensorComparison], faults: Iterable[Fault] = ()
) -> Set[TensorName]:
    """The gradients of parameters that are wrong because they were clipped by a wrong norm.

    If the norm was compared, the factor of the gradients is the inverse of the norm's. If the
    script computes the norm itself, the recorded gradients are already scaled: the clipped ones are
    all off by one factor, other gradients make the norm wrong, and together they have the norm of
    the reference's. Empty for a step in which no other gradient is wrong: then the clipping factor
    itself is wrong.
    """
    found: set[TensorName] = set()
    for step in {each.name.step for each in comparisons if each.name.kind == "param_grads"}:
        of_step = [each for each in comparisons if each.name.step == step]
        gradients = [each for each in of_step if each.name.kind == "param_grads"]
        alike = {
            each.name
            for each in gradients
            for left in _left_by_clipping(of_step, gradients)
            if each.evidence.factor is not None and _is(each.evidence.factor, left)
        }
        wrong = {each.name for each in gradients if each.differs}
        wrong |= {each.name for each in faults if _is_gradient(each.name, step)}
        if alike < wrong:
            found |= alike
    return found


def _left_by_clipping(
    of_step: Iterable[TensorComparison], gradients: Sequence[TensorComparison]
) -> Iterator[float]:
    """The factor that clipping leaves on a gradient that is right; nothing if no norm is known to be wrong."""
    norms = [each for each in of_step if each.name.kind == "gradient_norms"]
    for each in norms:
        if each.evidence.factor is not None:
            yield 1 / each.evidence.factor
    factors = [each.evidence.factor for each in gradients if each.evidence.factor is not None]
    if norms or not factors:
        return
    most = max(factors, key=lambda factor: sum(_is(each, factor) for each in factors))
    whole = hypot(*(each.norm for each in gradients))
    made = hypot(*(each.made for each in gradients))
    error = ERRORS * max((each.standard_error for each in gradients), default=0.0)
    if 0 < whole < inf and abs(made / whole - 1) <= abs(most - 1) / EXACTLY + error < abs(most - 1):
        yield most


def _is(factor: float, left: float) -> bool:
    """True if a factor is the one that clipping leaves."""
    return abs(factor / left - 1) <= abs(factor - 1) / EXACTLY


def _is_gradient(name: TensorName, step: int) -> bool:
    return (name.kind, name.step) == ("param_grads", step)
