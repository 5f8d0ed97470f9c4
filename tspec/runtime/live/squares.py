"""Squared errors of each prediction with each target, where pairs were meant.

`[n, 1]` less `[n]` has the shape `[n, n]`: the differences of each with each.
"""

from __future__ import annotations

from typing import Any

from tspec.runtime.live.graph import first_input, nodes, only_input, operation_of, shape_of

_FOLDS = frozenset({"Mean", "Sum"})


def stretched_squares(losses: Any) -> list[str]:
    """The shapes before and after each column that was stretched to a square of differences, whose squares were averaged.

    What was taken off has no graph: how far apart predictions are is a matter of each with each.
    """
    folded = [first_input(node) for operation, node in nodes(losses) if operation in _FOLDS]
    sizes = (_stretched(difference) for node in folded if (difference := _squared(node)))
    return [f"{[size, 1]} -> {[size, size]}" for size in sizes if size is not None]


def _squared(node: Any) -> Any:
    """What a node is the square of; None if it is none."""
    if node is None:
        return None
    if operation_of(node) == "Pow":
        return first_input(node) if node._saved_exponent == 2 else None
    factors = [each for each, _ in node.next_functions]
    is_square = operation_of(node) == "Mul" and len(factors) == 2 and factors[0] is factors[1]
    return factors[0] if is_square else None


def _stretched(difference: Any) -> int | None:
    """The `n` of a column `[n, 1]` that a difference stretches to `[n, n]`; None of other differences."""
    column = only_input(difference)
    if column is None or operation_of(difference) != "Sub" or not difference._input_metadata:
        return None
    before, after = shape_of(column), shape_of(difference)
    is_square = len(after) == 2 and after[0] == after[1] > 1 and before == (after[0], 1)
    return after[0] if is_square else None
