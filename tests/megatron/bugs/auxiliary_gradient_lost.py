"""The gradient of the auxiliary loss never reaches the router: what carries it is thrown away.

Source: NeMo Automodel issue 1408 (the result of `MoEAuxLossAutoScaler.apply` is not used).
"""

from __future__ import annotations

from typing import Any

LAYOUT = "dp=2,experts=4,ep=2"
FOUND = None


def put_in() -> None:
    """The router goes on with the activations that it had before."""
    from megatron.core.transformer.moe import router

    class Lost(router.MoEAuxLossAutoScaler):
        @classmethod
        def apply(cls, output: Any, loss: Any) -> Any:
            super().apply(output, loss)
            return output

    router.MoEAuxLossAutoScaler = Lost
