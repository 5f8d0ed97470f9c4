"""Targets that are a reward and a discounted value of the next state, computed with a gradient by the
layers that they train.
"""

from __future__ import annotations

from typing import Any

from tspec.runtime.live.losses.graph import (
    KEEPS,
    RESHAPES,
    nodes,
    only_input,
    operation_of,
    preceding,
    reached,
)

_LOSSES = frozenset({"MseLoss", "SmoothL1Loss", "HuberLoss", "L1Loss"})
_SIZES = frozenset({"Pow", "Abs", "Mul"})
"""Operations that make a loss of a difference. A margin is no size: it is cut off at zero."""
_CHOICES = frozenset({"Max", "Amax", "Gather"})
"""Operations that take the value of one action from those of all."""
_LAID_OUT = KEEPS | RESHAPES | {"Select", "Index", "Slice"}
_CHAIN = 8
"""The number of sums and products between a target and the value in it."""


def moving_targets(losses: Any) -> int:
    """The number of differences between a value and a target `r + gamma * max(values)`. Only targets count
    that have a gradient and were computed with parameters of the value.
    """
    return sum(_is_of_value_and_target(node) for node in map(_difference, nodes(losses)))


def _difference(named: tuple[str, Any]) -> Any:
    """The node of a difference whose size is a loss; None of other nodes."""
    operation, node = named
    if operation in _LOSSES:
        return node
    if operation not in _SIZES:
        return None
    first, *others = (following for following, _ in node.next_functions)
    if operation == "Mul" and others != [first]:  # no square
        return None
    before = preceding(first, _LAID_OUT)
    return before if before is not None and operation_of(before) == "Sub" else None


def _is_of_value_and_target(difference: Any) -> bool:
    if difference is None:
        return False
    sides = [each for each, _ in difference.next_functions[:2]]
    if len(sides) != 2 or None in sides:
        return False
    return any(
        _is_discounted(target) and bool(_parameters(target) & _parameters(value))
        for target, value in (sides, sides[::-1])
    )


def _is_discounted(target: Any) -> bool:
    """True of a constant, plus a constant times the value of one action."""
    node = target
    seen: set[str] = set()
    for _ in range(_CHAIN):
        node = preceding(node, _LAID_OUT)
        if node is None:
            return False
        operation = operation_of(node)
        if operation in _CHOICES:
            return seen == {"Add", "Mul"}
        if operation not in ("Add", "Mul"):
            return False
        seen.add(operation)
        node = only_input(node)
    return False


def _parameters(node: Any) -> set[int]:
    """The identities of the leaves that a node is computed of."""
    leaves = (getattr(each, "variable", None) for each in reached([node]))
    return {id(leaf) for leaf in leaves if leaf is not None}
