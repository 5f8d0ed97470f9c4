"""Reads the sum that a loss is: its terms, the signs with which they count, and the factor of all."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from tspec.runtime.live.losses.graph import (
    KEEPS,
    RESHAPES,
    SCALES,
    only_input,
    operation_of,
    preceding,
    saved,
)

LEAST_DIVISOR = 8
"""Smaller numbers are those of terms or parts, over which a loss is averaged on purpose."""
_MEAN = 1
"""The number of `mean` among torch's reductions."""
_ROUND_OFF = 1e-6
_CHAIN = 256
"""The number of nodes at the end of a graph that are read as sums."""
_RISES = frozenset({"LogSigmoid", "Softplus"})
"""Functions that rise with their input, such as the loss of a preference does with a difference."""
_KEEP_SIGN = (
    KEEPS
    | RESHAPES
    | _RISES
    | {"Add", "Stack", "Cat", "Sum", "Mean", "Select", "Split", "Index", "Unbind", "Dot"}
)
_POSITIVE = frozenset({"Exp", "Sigmoid", "Softmax", "Softplus", "Pow", "Square", "Abs"})
"""Operations whose results are weights without a sign."""


def ends(losses: Any, is_term: Callable[[Any], bool]) -> Iterator[tuple[Any, int]]:
    """The last nodes of a graph, back to the terms, each with the sign with which it counts."""
    tensors = losses if isinstance(losses, (list, tuple)) else (losses,)
    for each in tensors:
        if getattr(each, "grad_fn", None) is not None:
            yield from signed_terms(each.grad_fn, is_term)


def signed_terms(last: Any, is_term: Callable[[Any], bool]) -> Iterator[tuple[Any, int]]:
    """The nodes of the sum that a node computes, back to the terms, each with the sign with which it counts."""
    waiting = [(last, 1)]
    for _ in range(_CHAIN):
        if not waiting:
            return
        node, sign = waiting.pop()
        yield node, sign
        if not is_term(node):
            signs = _signs(node)
            waiting += [
                (following, sign * of)
                for (following, _), of in zip(node.next_functions, signs, strict=False)
                if following is not None and of
            ]


def weighted_terms(last: Any, is_term: Callable[[Any], bool]) -> Iterator[tuple[Any, float]]:
    """The terms of the sum that a node computes, each with the number by which it is multiplied.

    A term is a node that `is_term`, or that does more than to add, to subtract and to multiply by a number;
    None stands for a constant.
    """
    waiting = [(last, 1.0)]
    for _ in range(_CHAIN):
        if not waiting:
            return
        node, factor = waiting.pop()
        operation = "" if node is None or is_term(node) else operation_of(node)
        scale = _scale(node, operation)
        if operation in ("Add", "Sub"):
            factors = (factor, factor * node._saved_alpha * (1 if operation == "Add" else -1))
            inputs = [following for following, _ in node.next_functions]
            waiting += zip(inputs, factors, strict=True)
        elif scale is not None and only_input(node) is not None:
            waiting.append((only_input(node), factor * scale))
        else:
            yield node, factor
    yield from waiting


def _scale(node: Any, operation: str) -> float | None:
    """The number by which a node multiplies its only input; None if it does something else."""
    if operation in KEEPS | RESHAPES:
        return 1.0
    if operation == "Neg":
        return -1.0
    constant = constant_of(node) if operation in SCALES else None
    if constant is None or (operation == "Div" and not constant):
        return None
    return 1 / constant if operation == "Div" else constant


def factor_of_all(losses: Any) -> float | None:
    """The constant by which a loss was multiplied at last, after all its terms were added up; 1 if by none.

    None if the factor has a graph or is no single number, and for several losses.
    """
    found = _scaled(losses)
    return None if found is None else found[0]


def divisor_of_average(losses: Any) -> int | None:
    """The whole number by which a loss that is an average was divided at last, if it is at least `LEAST_DIVISOR`.

    None where no loss function or `mean` computed the average, as of a sum of several terms.
    """
    found = _scaled(losses)
    if found is None:
        return None
    factor, node = found
    if node is None or not 0 < factor <= 1 / LEAST_DIVISOR:
        return None
    divisor = round(1 / factor)
    if abs(divisor * factor - 1) > _ROUND_OFF:
        return None
    return divisor if _averages(node) else None


def is_average(losses: Any) -> bool:
    """True if the loss is an average, or a sum of averages that are each multiplied by a number.

    Loss functions and `mean` compute averages. Label smoothing adds one to a sum that is divided by the number of samples.
    """
    found = _scaled(losses)
    if found is None or found[1] is None:
        return False
    terms = [each for each in weighted_terms(found[1], _averages) if each[0] is not None]
    others = [(term, factor) for term, factor in terms if not _averages(term)]
    return len(others) < len(terms) and all(
        operation_of(term) == "Sum" and abs(factor) <= 1 / LEAST_DIVISOR for term, factor in others
    )


def _averages(node: Any) -> bool:
    node = preceding(node, KEEPS | RESHAPES | {"Neg"})
    return node is not None and (
        operation_of(node) == "Mean" or getattr(node, "_saved_reduction", None) == _MEAN
    )


def _scaled(losses: Any) -> tuple[float, Any] | None:
    """The constant by which a loss was multiplied at last, and the node of what was multiplied; None as
    `factor_of_all`.
    """
    tensors = losses if isinstance(losses, (list, tuple)) else (losses,)
    node = tensors[0].grad_fn if len(tensors) == 1 else None
    if node is None:
        return None
    factor = 1.0
    while node is not None and operation_of(node) in SCALES:
        scale = constant_of(node)
        if not scale:
            return None
        factor *= 1 / scale if operation_of(node) == "Div" else scale
        node = only_input(node)
    return factor, node


def is_multiplied_by_zero(node: Any) -> bool:
    """True if a node multiplies what has a graph by the whole number zero, which no configured weight
    such as 0.0 is.
    """
    value = _constant(node) if operation_of(node) == "Mul" else None
    return value is not None and not value.is_floating_point() and int(value) == 0


def constant_of(node: Any) -> float | None:
    """The number by which a node multiplies or divides what has a graph.

    None if both factors have a graph, or the constant is no number that the host knows: a read from a
    device would wait for it.
    """
    value = _constant(node)
    return None if value is None else float(value)


def _constant(node: Any) -> torch.Tensor | None:
    """The same as a tensor of one element."""
    has_graph = [each is not None for each, _ in node.next_functions]
    if sum(has_graph) != 1:
        return None
    name = "other" if has_graph[0] else "self"
    value = saved(node, name)
    if value is None and isinstance(number := getattr(node, f"_saved_{name}", None), float):
        value = torch.tensor(number, dtype=torch.float64)  # torch's own code multiplies by numbers
    is_known = value is not None and value.numel() == 1 and value.device.type == "cpu"
    return value if is_known else None


def _signs(node: Any) -> tuple[int, ...]:
    """The sign with which a node counts each of its inputs; 0 if it is not known."""
    operation, inputs = operation_of(node), [each for each, _ in node.next_functions]
    if operation in _KEEP_SIGN:
        return (1,) * len(inputs)
    if operation == "Neg":
        return (-1,)
    if operation == "Sub":
        return (1, -1)
    if operation == "Rsub":
        return (-1, 1)
    if operation == "Mul" and len(inputs) == 2:
        return (
            _sign_of(inputs[1], saved(node, "other")),
            _sign_of(inputs[0], saved(node, "self")),
        )
    if operation == "Div" and inputs:
        return (_sign_of(inputs[1] if len(inputs) > 1 else None, saved(node, "other")), 0)
    return ()


def _sign_of(factor: Any, value: torch.Tensor | None) -> int:
    """The sign of a factor: by its operation if it has a graph, else by its values; 0 if not known."""
    if factor is not None:
        return int(operation_of(factor) in _POSITIVE)
    if value is None or value.is_meta or value.is_complex() or not value.numel():
        return 0
    return int(bool((value >= 0).all())) - int(bool((value <= 0).all()))
