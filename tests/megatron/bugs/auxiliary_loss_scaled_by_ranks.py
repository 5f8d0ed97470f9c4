"""The gradient of the auxiliary loss is multiplied by the number of tensor-parallel ranks.

Source: Megatron-LM issue 7452, finding 10, and pull request 5047.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "tp=2,sp,experts=4,etp=2"
FOUND = None


def put_in() -> None:
    """The scale is doubled."""
    from megatron.core.transformer.moe.moe_utils import MoEAuxLossAutoScaler

    original = MoEAuxLossAutoScaler.backward

    def backward(context: Any, gradient: Any) -> Any:
        gradient, auxiliary = original(context, gradient)
        return gradient, auxiliary * 2

    MoEAuxLossAutoScaler.backward = staticmethod(backward)
