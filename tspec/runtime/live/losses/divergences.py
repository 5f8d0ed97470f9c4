"""Reads Kullback-Leibler divergences between a normal distribution and the standard one, as variational
autoencoders write them by hand: `-0.5 * sum(1 + logvar - mu ** 2 - exp(logvar))`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import isclose
from typing import Any

from tspec.runtime.live.losses.graph import (
    KEEPS,
    RESHAPES,
    SCALES,
    first_input,
    nodes,
    only_input,
    operation_of,
    preceding,
    saved,
    shape_of,
)
from tspec.runtime.live.losses.sums import ends, signed_terms, weighted_terms

_MEAN, _SUM = 1, 2
"""The numbers of torch's reductions."""
LEAST_FACTOR = 0.1
"""Divergences whose factor is a smaller part of that of the other loss have a weight of their own."""


@dataclass(frozen=True, slots=True)
class _Divergence:
    """A divergence in the sum that a loss is."""

    log_variance: tuple[Any, int]
    """The node that computed the logarithm of the variance, and which of its results it is."""
    sign: int
    """The sign with which the loss counts the divergence."""


def grown_divergences(losses: Any) -> int:
    """The number of divergences that a loss subtracts, so that training makes them larger."""
    return sum(each.sign < 0 for each in _divergences(list(ends(losses, _is_no_term))))


def variances_as_deviations(losses: Any) -> int:
    """The number of divergences whose variance is multiplied with noise. It belongs to a standard deviation:
    the variance is its square.
    """
    variances = {each.log_variance for each in _divergences(list(ends(losses, _is_no_term)))}
    if not variances:
        return 0
    return sum(
        operation == "Mul" and _log_of_scaled_noise(node) in variances
        for operation, node in nodes(losses)
    )


def mixed_reductions(losses: Any) -> list[str]:
    """Of each divergence that is summed over a batch whose other loss is averaged, or averaged where the other
    one is summed: the shapes of both. Divergences with a weight of their own are left out.
    """
    tensors = losses if isinstance(losses, (list, tuple)) else (losses,)
    terms = [
        (_is_divergence(node), *reduced, abs(factor))
        for each in tensors
        if each.grad_fn is not None
        for node, factor in weighted_terms(each.grad_fn, _is_no_term)
        if node is not None and (reduced := _reduction(node)) is not None
    ]
    return [
        f"{list(shape)} beside {list(other)}"
        for is_divergence, reduction, shape, factor in terms
        if is_divergence
        for is_another, of_other, other, beside in terms
        if not is_another
        and reduction != of_other
        and shape[0] == other[0]
        and LEAST_FACTOR * beside <= factor <= beside
        and not isclose(factor * shape[0], beside)  # a sum that is divided by the size of the batch
    ]


def _is_divergence(node: Any) -> bool:
    return next(_divergences(list(signed_terms(node, _is_no_term))), None) is not None


def _is_no_term(node: Any) -> bool:
    return False


def _divergences(terms: list[tuple[Any, int]]) -> Iterator[_Divergence]:
    """The divergences in a sum: a variance, its logarithm with the other sign, and a square."""
    for node, sign in terms:
        if operation_of(node) != "Exp" or not sign:
            continue
        log_variance = node.next_functions[0]
        squares = (each for each, of in terms if of == sign and _is_square(each))
        if (log_variance[0], -sign) in terms and next(squares, None) is not None:
            yield _Divergence(log_variance, sign)


def _is_square(node: Any) -> bool:
    operation = operation_of(node)
    if operation == "Mul":
        first, *others = node.next_functions
        return bool(others == [first])
    return operation == "Square" or (operation == "Pow" and bool(node._saved_exponent == 2))


def _log_of_scaled_noise(product: Any) -> tuple[Any, int] | None:
    """What the exponential that a product multiplies with noise was computed of; None of other products."""
    with_graph = [each is not None for each, _ in product.next_functions]
    noise = saved(product, "other" if with_graph[0] else "self")
    scale = preceding(only_input(product), KEEPS | RESHAPES)
    if scale is None or operation_of(scale) != "Exp" or noise is None:
        return None
    is_noise = tuple(noise.shape) == shape_of(scale) and bool((noise < 0).any() & (noise > 0).any())
    return scale.next_functions[0] if is_noise else None


def _reduction(node: Any) -> tuple[int, tuple[int, ...]] | None:
    """How a term was reduced from a whole batch to one number, and from which shape; None of other terms.

    Sums of each sample are averaged like the samples.
    """
    before, operation = first_input(node), operation_of(node)
    if operation == "Mean" and before is not None:
        before = _of_samples(before)
    if before is None or shape_of(node) != () or len(shape_of(before)) < 2:
        return None
    reduction = {"Mean": _MEAN, "Sum": _SUM}.get(operation, getattr(node, "_saved_reduction", None))
    return (reduction, shape_of(before)) if reduction in (_MEAN, _SUM) else None


def _of_samples(node: Any) -> Any:
    """The node whose values a sum of each sample adds up; the same node if it is no such sum."""
    last = preceding(node, KEEPS | SCALES | {"Neg"})
    added = None if last is None or operation_of(last) != "Sum" else first_input(last)
    is_of_each = added is not None and shape_of(added)[:1] == shape_of(node) != ()
    return added if is_of_each else node
