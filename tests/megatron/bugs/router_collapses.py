"""The router sends every token to the same experts: nothing balances them, and one logit is ahead of all.

Source: routers that collapse (Shazeer et al. 2017, 'Outrageously large neural networks', section 4).
"""

from __future__ import annotations

from typing import Any

PACK = "moe"
LAYOUT = "experts=4,noaux"
STEPS = 18
FOUND = ("no_expert_starves", 16, (0,), "route #8")


def put_in() -> None:
    """The logit of the first expert is ahead by far."""
    from megatron.core.transformer.moe.router import TopKRouter

    gating = TopKRouter.gating

    def ahead(self: Any, tokens: Any) -> Any:
        logits = gating(self, tokens).clone()
        logits[..., :2] += 100.0
        return logits

    TopKRouter.gating = ahead
