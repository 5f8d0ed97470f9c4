"""The attention sink is cut over tp by heads and not marked as cut, so the gradient norm leaves shards out.

Source: Megatron-LM issue 7452, finding 8. megatron-core 0.16.1 has it as it is.
"""

from __future__ import annotations

LAYOUT = "tp=2,sink"
FOUND = (
    "gradients_of_copies_agree",
    1,
    (0, 1),
    "decoder.layers.0.self_attention.core_attention.softmax_offset",
)


def put_in() -> None:
    """It is there."""
