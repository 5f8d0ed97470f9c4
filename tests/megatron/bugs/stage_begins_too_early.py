"""The second stage begins with a layer that the first has too, and the last one is missing.

Source: TTrace 10, Megatron-LM issue 468 (wrong division into stages).
"""

from __future__ import annotations

from typing import Any

LAYOUT = "pp=2"
FOUND = ("stages_hold_every_layer", 1, (0, 1), "")


def put_in() -> None:
    """The offset of later stages is one too small."""
    from megatron.core.transformer import transformer_block, transformer_layer

    original = transformer_layer.get_transformer_layer_offset

    def offset(*args: Any, **kwargs: Any) -> int:
        return max(0, int(original(*args, **kwargs)) - 1)

    transformer_block.get_transformer_layer_offset = offset
    transformer_layer.get_transformer_layer_offset = offset
