"""With overlapped reduction no bucket of gradients is ever reduced.

Source: TTrace 11's class (wrong gradients with overlap), in Megatron's own data parallelism.
"""

from __future__ import annotations

LAYOUT = "dp=2,overlap"
FOUND = ("data_parallel_gradients_agree", 1, (0, 1), "embedding.word_embeddings.weight")


def put_in() -> None:
    """No reduction begins, and none is waited for."""
    from megatron.core.distributed import param_and_grad_buffer

    group = param_and_grad_buffer._ParamAndGradBucketGroup
    group.start_grad_sync = lambda self, *args, **kwargs: None
    group.finish_grad_sync = lambda self, *args, **kwargs: None
