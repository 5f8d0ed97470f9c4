"""One tensor-parallel rank is told of a context twice as long: its heads see half of each distance between tokens.

Source: `seq_len_interpolation_factor` of megatron-core's rotary embeddings, set on one rank only.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "tp=2,swiglu,rms,rope,nobias"
FOUND = ("rotary_angles_agree", 1, (0, 1), "pass_layers #0")


def put_in() -> None:
    """The last tensor-parallel rank divides all positions by two."""
    from megatron.core import parallel_state
    from megatron.core.models.common.embeddings.rotary_pos_embedding import RotaryEmbedding

    original = RotaryEmbedding.__init__

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        ranks = parallel_state.get_tensor_model_parallel_world_size()
        if 0 < parallel_state.get_tensor_model_parallel_rank() == ranks - 1:
            self.seq_len_interpolation_factor = 2.0

    RotaryEmbedding.__init__ = __init__
