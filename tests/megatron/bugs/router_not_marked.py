"""The router's weight is not marked, so its gradient is not summed over ranks that see parts of a sequence.

Source: TTrace 6, Megatron-LM issue 599 and pull request 619.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "tp=2,sp,experts=4,etp=2"
FOUND = ("gradients_of_copies_agree", 1, (0, 1), "decoder.layers.0.mlp.router.weight")


def put_in() -> None:
    """The mark is taken away when the router has been built."""
    from megatron.core.transformer.moe.router import TopKRouter

    original = TopKRouter.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        self.weight.sequence_parallel = False

    TopKRouter.__init__ = init
