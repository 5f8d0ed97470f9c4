"""The last layer norm is not marked, so its gradient is not summed over ranks that see parts of a sequence.

Source: TTrace 12, Megatron-LM issue 1446.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "tp=2,sp"
FOUND = ("gradients_of_copies_agree", 1, (0, 1), "decoder.final_layernorm.weight")


def put_in() -> None:
    """The mark is taken away when the decoder has been built."""
    from megatron.core.transformer.transformer_block import TransformerBlock

    original = TransformerBlock.__init__

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        for parameter in self.final_layernorm.parameters():
            parameter.sequence_parallel = False

    TransformerBlock.__init__ = init
