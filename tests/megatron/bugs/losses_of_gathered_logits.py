"""The logits of all ranks are gathered, and their loss is taken as if each rank had other classes: log(tp) is added to it.

Source: Megatron-LM issue 7452, finding 2. megatron-core 0.16.1 has it as it is, with `parallel_output=False`.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "tp=2"
FOUND = None


def put_in() -> None:
    """The model is asked to gather its logits, and is given labels too."""
    from megatron.core.models.gpt.gpt_model import GPTModel

    init = GPTModel.__init__

    def gathering(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs, parallel_output=False)

    GPTModel.__init__ = gathering
