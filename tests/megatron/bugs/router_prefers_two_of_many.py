"""Of 32 experts a router sends nearly all tokens to two, long after the first steps.

Source: routers that collapse (Shazeer et al. 2017, 'Outrageously large neural networks', section 4).
"""

from __future__ import annotations

from typing import Any

PACK = "moe"
LAYOUT = "experts=32,noaux,passes=1,sequence=8"
STEPS = 122
FOUND = ("experts_are_balanced", 120, (0,), "route #0")


def put_in() -> None:
    """Each other expert gets one token: the first fifteen go to two of them each, all others to the first two."""
    import torch
    from megatron.core.transformer.moe.router import TopKRouter

    gating = TopKRouter.gating

    def ahead(self: Any, tokens: Any) -> Any:
        logits = gating(self, tokens)
        place = torch.arange(logits.shape[:-1].numel())
        first = torch.where(place < 15, 2 * place + 2, 0).view(*logits.shape[:-1], 1)
        chosen = torch.cat([first, first + 1], -1)
        return logits + torch.zeros_like(logits).scatter(-1, chosen, 100.0)

    TopKRouter.gating = ahead
