"""A stage halves what it has received, in place, before its layers read it.

Source: the class of PyTorch issue 84803 (what is received is not what is read); in Megatron `set_input_tensor` lies in between.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "pp=2"
PACK = "communication"
FOUND = ("layers_read_what_was_sent", 1, (1,), "m #0")


def put_in() -> None:
    """Where there is an input."""
    from megatron.core.transformer.transformer_block import TransformerBlock

    original = TransformerBlock.set_input_tensor

    def set_input_tensor(self: Any, input_tensor: Any) -> None:
        if input_tensor is not None:
            input_tensor.data.mul_(0.5)
        original(self, input_tensor)

    TransformerBlock.set_input_tensor = set_input_tensor
