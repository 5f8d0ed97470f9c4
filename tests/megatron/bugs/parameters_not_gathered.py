"""After an update of the distributed optimizer each rank has its own part alone: the others are stale.

Source: TTrace 9, Megatron-LM issue 663 (parameters are not updated).
"""

from __future__ import annotations

LAYOUT = "dp=2,zero,bf16"
FOUND = ("copies_agree", 2, (0, 1), "embedding.word_embeddings.weight")


def put_in() -> None:
    """Nothing is gathered."""
    from megatron.core.distributed.distributed_data_parallel import DistributedDataParallel

    DistributedDataParallel.start_param_sync = lambda self, *args, **kwargs: None
