"""Reads from the autograd graph of a loss how a policy learns from its chosen actions.


The policy gradient is that of each action's log-probability, times a constant. A gradient through
any other factor of the product is a fault.
"""

from __future__ import annotations

from typing import Any

from tspec.runtime.live.losses.graph import (
    KEEPS,
    MATRIX_PRODUCTS,
    RESHAPES,
    SOFTMAXES,
    first_input,
    nodes,
    operation_of,
    preceding,
    reached,
    saved,
    shape_of,
)
from tspec.runtime.live.losses.squares import is_row_of_samples, stretched

MOST = 64
"""The number of products of one loss that are checked. An episode has one for each of its steps."""
_SCALED = frozenset({"Neg", "Mul", "Div", "Add", "Clamp", "ClampMin", "Sum", "Mean"})
_LAID_OUT = (
    KEEPS
    | RESHAPES
    | {"Stack", "Cat", "Unbind", "Slice", "Select", "Index", "BackwardHookFunction"}
)
_OF_RATIOS = frozenset({"Exp", "Sub"})
_OF_PROBABILITIES = frozenset({"Log", "Clamp", "ClampMin", "Add", "Div"})
_ONE_BY_ONE = frozenset(
    {"Neg", "Mul", "Div", "Add", "Sub", "Exp", "Clamp", "Minimum", "Maximum", "Where"}
)
_LAYERS = MATRIX_PRODUCTS | {"Addmm", "Convolution"}


def moving_weights(losses: Any) -> list[str]:
    """The factors that have a gradient beside the log-probability of a chosen action.

    `weight` is the factor of the log-probability, or of the ratio of two, if layers other than the
    policy's took part in computing it. `old` is the probability in the denominator of a ratio.
    """
    found = nodes(losses)
    products = [node for operation, node in found if operation == "Mul"][:MOST]
    ratios = [node for operation, node in found if operation == "Exp"][:MOST]
    weights = {"weight" for node in products if _has_moving_weight(node)}
    return sorted(weights | {"old" for node in ratios if _compares_with_moving(node)})


def stretched_weights(losses: Any) -> list[str]:
    """The shapes before and after each log-probability that broadcasting stretched to pairs with the
    numbers that it is multiplied by, or compared with in a ratio.

    Only results that are averaged to a single number count, and only constants as the other operand.
    """
    found = [node for node in _averaged(losses) if operation_of(node) in ("Mul", "Sub")]
    shapes = dict.fromkeys(filter(None, map(_paired, found)))
    return [f"{list(before)} -> {list(after)}" for before, after in shapes]


def _averaged(losses: Any) -> list[Any]:
    """The operations whose elements are combined one by one, up to an average of all."""
    folds = (node for operation, node in nodes(losses) if operation in ("Mean", "Sum"))
    waiting = [first_input(node) for node in folds if shape_of(node) == ()]
    found: list[Any] = []
    while waiting and len(found) < MOST:
        node = waiting.pop()
        if node is not None and node not in found and operation_of(node) in _ONE_BY_ONE:
            found.append(node)
            waiting += [each for each, _ in node.next_functions]
    return found


def _paired(node: Any) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The shapes of a column `[n, 1]` or a row `[n]` and of its pairs with a constant, `[n, n]`."""
    if operation_of(node) == "Sub":
        return stretched(node)
    given = [each for each, _ in node.next_functions if each is not None]
    constant = saved(node, "other" if node.next_functions[0][0] is not None else "self")
    if len(given) != 1 or constant is None or not given[0]._input_metadata:
        return None
    before, after, other = shape_of(given[0]), shape_of(node), tuple(constant.shape)
    size = after[0] if after else 0
    if size < 2 or after != (size, size):
        return None
    is_column = before == (size, 1) and other == (size,)
    is_row = other == (size, 1) and is_row_of_samples(given[0], size)
    return (before, after) if is_column or is_row else None


def _has_moving_weight(product: Any) -> bool:
    """True if one factor belongs to a chosen action and layers beside its policy computed the other
    factor.
    """
    factors = [following for following, _ in product.next_functions]
    if len(factors) != 2 or None in factors:
        return False
    logits = [_logits_of(each) for each in factors]
    if logits.count(None) != 1:  # the product of two ratios is a ratio
        return False
    weight = logits.index(None)
    return _is_computed_beside(logits[1 - weight], factors[weight])


def _compares_with_moving(ratio: Any) -> bool:
    """True if the ratio is the exponential of a difference whose terms both belong to chosen
    actions.
    """
    difference = preceding(ratio.next_functions[0][0], _LAID_OUT | {"Clamp", "Sum"})
    if difference is None or operation_of(difference) != "Sub":
        return False
    terms = [following for following, _ in difference.next_functions]
    return all(term is not None and _logits_of(term) is not None for term in terms)


def _logits_of(factor: Any) -> Any:
    """The node that computed the logits of the policy, if it is the log-probability of a chosen action, or a ratio of two; else None."""
    node = preceding(factor, _LAID_OUT | _SCALED | _OF_RATIOS)
    has_logarithm = node is not None and operation_of(node) == "Log"
    if has_logarithm:
        node = preceding(node, _LAID_OUT | _OF_PROBABILITIES)
    if node is None or operation_of(node) != "Gather":
        return None
    node = preceding(node.next_functions[0][0], _LAID_OUT)
    if node is not None and operation_of(node) == "Log":
        has_logarithm = True
        node = preceding(node, _LAID_OUT | _OF_PROBABILITIES)
    if node is None:
        return None
    operation, inputs = operation_of(node), [following for following, _ in node.next_functions]
    if operation == "Sub" and inputs[1] is not None and operation_of(inputs[1]) == "Logsumexp":
        return inputs[0]
    if operation == "LogSoftmax" or (operation in SOFTMAXES and has_logarithm):
        return inputs[0]
    return None


def _is_computed_beside(logits: Any, weight: Any) -> bool:
    """True if layers computed the weight, and not from the logits."""
    has_layers = False
    for node in reached([weight]):
        if node is logits:
            return False
        has_layers = has_layers or operation_of(node) in _LAYERS
    return has_layers
