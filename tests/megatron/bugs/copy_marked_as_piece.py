"""A weight that all tensor-parallel ranks hold is marked as cut, so that the gradient norm counts each copy.

Source: Transformer Engine (ROCm) pull request 715.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "tp=2"
FOUND = ("shards_differ", 1, (0, 1), "embedding.position_embeddings.weight")


def put_in() -> None:
    """The position embeddings get the mark before the model is wrapped."""
    from megatron.core.distributed.distributed_data_parallel import DistributedDataParallel

    original = DistributedDataParallel.__init__

    def init(self: Any, config: Any, buckets: Any, module: Any, **options: Any) -> None:
        model = getattr(module, "module", module)  # in bfloat16 it is wrapped
        weight = model.embedding.position_embeddings.weight
        weight.tensor_model_parallel, weight.partition_dim = True, 0
        original(self, config, buckets, module, **options)

    DistributedDataParallel.__init__ = init
