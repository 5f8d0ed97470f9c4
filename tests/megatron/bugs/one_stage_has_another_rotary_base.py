"""The last stage turns queries and keys by another base than the first, so its layers see other distances between tokens.

Source: the class of an argument that each stage reads by itself, here `rotary_base` of megatron-core's `RotaryEmbedding`.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "pp=2,swiglu,rms,rope,nobias"
FOUND = None


def put_in() -> None:
    """The table of the last stage has a base of its own."""
    from megatron.core import parallel_state
    from megatron.core.models.common.embeddings.rotary_pos_embedding import RotaryEmbedding

    original = RotaryEmbedding.__init__

    def init(self: Any, *given: Any, **options: Any) -> None:
        if parallel_state.is_pipeline_last_stage():
            options["rotary_base"] = 500_000
        original(self, *given, **options)

    RotaryEmbedding.__init__ = init
