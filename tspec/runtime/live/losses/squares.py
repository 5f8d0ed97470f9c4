"""Squared errors of each prediction with each target, where pairs were meant.

`[n, 1]` less `[n]`, or the other way round, has the shape `[n, n]`: the differences of each with each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tspec.runtime.live.losses.graph import first_input, nodes, only_input, operation_of, shape_of

_FOLDS = frozenset({"Mean", "Sum"})
_PIECEWISE = frozenset({"Where", "Mul", "Add", "Sub", "Div"})
"""Operations that combine squares and other errors element by element, as in a Huber loss by hand."""
_CHAIN = 16
"""The number of such operations that are followed back from an average."""


def stretched_squares(losses: Any) -> list[str]:
    """The shapes of predictions that broadcasting stretched to a square of differences before their
    squares were averaged.

    Each text is `before -> after`, for a row or a column. Only differences whose other operand has
    no graph count: pairwise differences of predictions may be meant.
    """
    folded = [first_input(node) for operation, node in nodes(losses) if operation in _FOLDS]
    squared = (difference for node in folded for difference in _squared_within(node))
    shapes = dict.fromkeys(filter(None, map(stretched, squared)))
    return [f"{list(before)} -> {list(after)}" for before, after in shapes]


def _squared_within(node: Any) -> Iterator[Any]:
    """What is squared in a node, or in the elements that it combines."""
    waiting = [node]
    for _ in range(_CHAIN):
        if not waiting:
            return
        node = waiting.pop()
        found = _squared(node)
        if found is not None:
            yield found
        elif node is not None and operation_of(node) in _PIECEWISE:
            waiting += [each for each, _ in node.next_functions]


def _squared(node: Any) -> Any:
    """The input of a node that squares it; None if the node is no square."""
    if node is None:
        return None
    if operation_of(node) == "Pow":
        return first_input(node) if node._saved_exponent == 2 else None
    factors = [each for each, _ in node.next_functions]
    is_square = operation_of(node) == "Mul" and len(factors) == 2 and factors[0] is factors[1]
    return factors[0] if is_square else None


def stretched(difference: Any) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The shape of a column `[n, 1]` or a row `[n]`, and the `[n, n]` that a difference stretches it to; None of other differences."""
    given = only_input(difference)
    if given is None or operation_of(difference) != "Sub" or not difference._input_metadata:
        return None
    before, after = shape_of(given), shape_of(difference)
    if len(after) != 2 or not after[0] == after[1] > 1:
        return None
    is_column = before == (after[0], 1)
    return (before, after) if is_column or is_row_of_samples(given, after[0]) else None


def is_row_of_samples(node: Any, size: int) -> bool:
    """True if `[n]` was computed from `[n, ...]`. It then has one element for each sample, unlike a
    mean of each feature.
    """
    source = first_input(node)
    if shape_of(node) != (size,) or source is None or not source._input_metadata:
        return False
    before = shape_of(source)
    return len(before) > 1 and before[0] == size
