"""Reads from the autograd graph of a loss which of two gains of a policy counts: that of the ratio of probabilities, or
that of the clamped ratio (PPO, Schulman et al. 2017, equation 7).
"""

from __future__ import annotations

from typing import Any

from tspec.runtime.live.losses.graph import KEEPS, RESHAPES, only_input, operation_of
from tspec.runtime.live.losses.sums import ends

_CHOICES = frozenset({"Minimum", "Maximum"})
_SCALED = KEEPS | RESHAPES | {"Mul", "Neg", "Div"}
_CLAMPS = frozenset({"Clamp", "ClampMin", "ClampMax"})
_CHAIN = 16
"""The number of operations between a gain and its ratio."""


def takes_larger_gain(losses: Any) -> bool | None:
    """True if the loss falls with the larger of two gains, or rises with the smaller of two losses. None if it has
    neither.
    """
    found = [
        (operation_of(node) == "Maximum") == (sign < 0)
        for node, sign in ends(losses, _chooses_gain)
        if _chooses_gain(node)
    ]
    return any(found) if found else None


def _chooses_gain(node: Any) -> bool:
    """True if a node takes one of two products, of a ratio and of the same ratio within bounds."""
    if operation_of(node) not in _CHOICES:
        return False
    ratios = [_ratio(following) for following, _ in node.next_functions]
    (one, is_clamped), (other, other_is_clamped) = ratios
    return one is not None and one is other and is_clamped != other_is_clamped


def _ratio(node: Any) -> tuple[Any, bool]:
    """The exponential that a product is of, if there is one, and whether it was clamped."""
    is_clamped = False
    for _ in range(_CHAIN):
        operation = "" if node is None else operation_of(node)
        if operation == "Exp":
            return node, is_clamped
        if operation not in _SCALED | _CLAMPS:
            break
        is_clamped = is_clamped or operation in _CLAMPS
        node = only_input(node)
    return None, is_clamped
