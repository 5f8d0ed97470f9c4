"""The router takes the last token of each batch for padding, and sends it to no expert.

Source: Megatron-LM's padding mask of the router, along the wrong dimension.
"""

from __future__ import annotations

from typing import Any

PACK = "moe"
LAYOUT = "dp=2,experts=4,ep=2"
FOUND = ("every_token_is_routed", 1, (0, 1), "route #0")


def put_in() -> None:
    """The rows of the routing map of these tokens are cleared."""
    from megatron.core.transformer.moe.router import TopKRouter

    routing = TopKRouter.routing

    def masked(self: Any, logits: Any, *args: Any, **kwargs: Any) -> Any:
        probabilities, routed, *rest = routing(self, logits, *args, **kwargs)
        kept = routed.clone()
        kept[-1] = False
        return (probabilities * kept, kept, *rest)

    TopKRouter.routing = masked
