"""Finds gradients that are wrong only because they were clipped by a wrong norm. Another gradient makes the norm wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from math import hypot, inf

from tspec.equivalence.compare import Fault, TensorComparison
from tspec.equivalence.recording import TensorName

EXACTLY = 30
"""The least ratio of the factor's distance from 1 to its distance from the factor that clipping
leaves. Then the two factors count as equal.
"""
TIMES_NOISE = 3
"""The usual tolerance in multiples of the noise."""
ERRORS = 4
"""The largest error of an estimated norm, in standard errors."""
EPSILON = 1e-6
"""The number that `clip_grad_norm_` and megatron-core add to a norm before they divide by it."""


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
    apart = {each.name: each.times for each in faults if each.name.kind == "param_grads"}
    found: set[TensorName] = set()
    for step in {each.name.step for each in comparisons if each.name.kind == "param_grads"}:
        of_step = [each for each in comparisons if each.name.step == step]
        gradients = [each for each in of_step if each.name.kind == "param_grads"]
        alike = {
            each.name
            for each in gradients
            for left in _left_by_clipping(of_step, gradients)
            if each.evidence.factor is not None
            and _is(each.evidence.factor, left, each.tolerated / TIMES_NOISE)
        }
        alike = alike or _clipped_by_norms_of_ranks(gradients, apart)
        wrong = {each.name for each in gradients if each.differs}
        wrong |= {name for name in apart if name.step == step}
        if alike < wrong:
            found |= alike
    return found


def equal_but_for_epsilon(comparisons: Sequence[TensorComparison]) -> Set[TensorName]:
    """The gradients of parameters that clipping made equal again, but for the constant that it adds
    to the norm. All were off by one factor before, as the norm is.
    """
    moved: dict[int, float] = {}
    for each in comparisons:
        if each.name.kind == "gradient_norms" and each.differs and each.norm and each.made:
            left = (1 + EPSILON / each.norm) / (1 + EPSILON / each.made)
            moved[each.name.step] = abs(left - 1)
    return {
        each.name
        for each in comparisons
        if each.name.kind == "param_grads" and each.name.step in moved and each.differs
        if each.error <= each.tolerated + moved[each.name.step]
    }


def _left_by_clipping(
    of_step: Iterable[TensorComparison], gradients: Sequence[TensorComparison]
) -> Iterator[float]:
    """The factor that clipping leaves on a gradient that is right; nothing if no norm is known to be wrong."""
    norms = [each for each in of_step if each.name.kind == "gradient_norms"]
    for each in norms:
        if each.evidence.factor is not None:
            yield 1 / each.evidence.factor
    most = _most_common_factor(gradients)
    if norms or most is None:
        return
    whole = hypot(*(each.norm for each in gradients))
    made = hypot(*(each.made for each in gradients))
    error = ERRORS * max((each.standard_error for each in gradients), default=0.0)
    if 0 < whole < inf and abs(made / whole - 1) <= abs(most - 1) / EXACTLY + error < abs(most - 1):
        yield most


def _clipped_by_norms_of_ranks(
    gradients: Sequence[TensorComparison], apart: Mapping[TensorName, float]
) -> set[TensorName]:
    """The gradients that each rank clipped by another norm, since replicas of others differ.

    `apart` has the distance of a gradient's replicas, divided by its tolerance. Most gradients are
    off by one factor on the first rank, and by another one on the last. The others are off by much
    more than these.
    """
    most = _most_common_factor(gradients)
    if most is None:
        return set()
    scaled = [
        each
        for each in gradients
        if each.name in apart and each.evidence.factor and _is(each.evidence.factor, most)
    ]
    if 2 * len(scaled) < len(gradients):
        return set()
    between = max(apart[each.name] * each.tolerated for each in scaled)
    may = abs(most - 1) + between
    far = [each for each in gradients if each.error > each.tolerated + may]
    if not far or any(each.error < EXACTLY * may for each in far):
        return set()
    return {each.name for each in gradients} - {each.name for each in far}


def _most_common_factor(gradients: Sequence[TensorComparison]) -> float | None:
    """The factor that most wrong gradients are off by; None if none is a multiple of the right one."""
    factors = [each.evidence.factor for each in gradients if each.evidence.factor is not None]
    return max(factors, key=lambda one: sum(_is(each, one) for each in factors), default=None)


def _is(factor: float, left: float, noise: float = 0.0) -> bool:
    """True if a factor is the one that clipping leaves, but for the noise of the gradient."""
    return abs(factor / left - 1) <= max(abs(factor - 1) / EXACTLY, noise)
