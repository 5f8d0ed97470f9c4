"""The gradient of the auxiliary loss is not divided by the number of micro-batches, as that of the main loss is.

Source: the class of a loop without Megatron's schedules, which call `MoEAuxLossAutoScaler.set_loss_scale`.
"""

from __future__ import annotations

LAYOUT = "dp=2,experts=4,ep=2"
FOUND = None


def put_in() -> None:
    """The scale of auxiliary losses stays at 1."""
    from megatron.core.transformer.moe.moe_utils import MoEAuxLossAutoScaler

    MoEAuxLossAutoScaler.set_loss_scale = lambda scale: None
