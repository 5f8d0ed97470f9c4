"""Main gradients are not cleared between two steps: each update also uses the gradients of all steps before.

Source: the class of a missing `zero_grad`. `DistributedDataParallel` of megatron-core asks for `zero_grad_buffer` at the beginning of each
iteration; `optimizer.zero_grad` does not reach its buffers.
"""

from __future__ import annotations

LAYOUT = "dp=2,bf16"
FOUND = ("main_gradients_are_cleared", 2, (0, 1), "")


def put_in() -> None:
    """Buffers keep what they hold."""
    from megatron.core.distributed import param_and_grad_buffer

    param_and_grad_buffer._ParamAndGradBuffer.reset = lambda self: None
