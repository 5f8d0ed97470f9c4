"""Each tensor-parallel rank adds the bias of a row-parallel layer to its part of the sum: the bias counts as often as there are ranks.

Source: the class of a bias that is added before the all-reduce (GPT-NeoX and others guard it by the rank).
"""

from __future__ import annotations

from typing import Any

LAYOUT = "tp=2"
FOUND = None


def put_in() -> None:
    """The bias that a row-parallel layer hands on is multiplied by the number of ranks."""
    from megatron.core import parallel_state
    from megatron.core.tensor_parallel.layers import RowParallelLinear

    original = RowParallelLinear.forward

    def forward(self: Any, input_: Any) -> Any:
        output, bias = original(self, input_)
        ranks = parallel_state.get_tensor_model_parallel_world_size()
        return output, None if bias is None else bias * ranks

    RowParallelLinear.forward = forward
