"""Ratios of probabilities: how likely a policy makes a decision now, over how likely it was when the
decision was made.

They are 1 as long as the policy has not changed (Schulman et al., "Proximal Policy Optimization
Algorithms", section 3).
"""

from __future__ import annotations

from typing import Any

from tspec.runtime.live.losses.graph import (
    KEEPS,
    RESHAPES,
    first_input,
    nodes,
    only_input,
    operation_of,
    preceding,
    saved,
)

_LOGARITHMS = frozenset(
    {"Gather", "Index", "Sum", "Sub", "NllLoss", "BinaryCrossEntropyWithLogits"}
)
"""The last operation of the logarithm of a probability: it is picked among those of all classes, or
computed by a formula and added up.
"""
_BETWEEN = KEEPS | RESHAPES | {"Neg"}
_LEAST = 8
"""Fewer ratios say little."""


def off_ratios(losses: Any) -> list[float]:
    """The largest distance from 1 among the ratios of each exponential of a difference to a constant.

    Only differences of logarithms of probabilities count.
    """
    exponentials = (node for operation, node in nodes(losses) if operation == "Exp")
    found = (saved(node, "result") for node in exponentials if _is_ratio(node))
    return [
        float((each.detach().double() - 1).abs().max())
        for each in found
        if each is not None and each.numel() >= _LEAST
    ]


def _is_ratio(exponential: Any) -> bool:
    difference = preceding(first_input(exponential), _BETWEEN)
    if difference is None or operation_of(difference) != "Sub":
        return False
    logarithm = preceding(only_input(difference), _BETWEEN)
    return logarithm is not None and operation_of(logarithm) in _LOGARITHMS
