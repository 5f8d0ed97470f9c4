"""The gradient of a column-parallel layer's input is used before it has been summed over tp.

Source: TTrace 11, Transformer Engine issue 1616. Its overlapped kernels do not run here; the missing sum is put
into Megatron's own layer.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "tp=2"
FOUND = ("gradients_of_copies_agree", 1, (0, 1), "embedding.position_embeddings.weight")


def put_in() -> None:
    """Layers are told that their input's gradient needs no sum."""
    import functools

    from megatron.core.tensor_parallel import layers

    original = layers.linear_with_grad_accumulation_and_async_allreduce

    @functools.wraps(original)
    def linear(*args: Any, **kwargs: Any) -> Any:
        return original(*args, **kwargs | {"allreduce_dgrad": False})

    layers.linear_with_grad_accumulation_and_async_allreduce = linear
