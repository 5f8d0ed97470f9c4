"""A row-parallel layer gives out its rank's part of the sum.

Source: TTrace 6's class, a missing all-reduce, in the forward pass.
"""

from __future__ import annotations

LAYOUT = "tp=2"
FOUND = ("residual_stream_agrees", 1, (0, 1), "decoder.layers.0")


def put_in() -> None:
    """The sum is left out, in all layers."""
    from megatron.core.tensor_parallel import layers

    layers.RowParallelLinear.forward.__globals__["reduce_from_tensor_model_parallel_region"] = (
        lambda output, group=None: output
    )
