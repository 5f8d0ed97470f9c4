"""The first rank's batch is sent to all ranks, and not to those of its tensor-parallel group: all replicas train on it.

Source: the class of a batch that `broadcast_data` of megatron-core sends within tensor-parallel groups, here in the whole world.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "dp=2"
FOUND = ("data_parallel_ranks_read_other_tokens", 1, (0, 1), "")


def put_in() -> None:
    """Tokens and labels are sent by the first rank of all."""
    import torch.distributed as dist
    from megatron.core.models.gpt import GPTModel

    original = GPTModel.forward

    def forward(self: Any, input_ids: Any, *given: Any, labels: Any = None, **options: Any) -> Any:
        sent = [each.contiguous() for each in (input_ids, labels)]
        for each in sent:
            dist.broadcast(each, src=0)
        return original(self, sent[0], *given, labels=sent[1], **options)

    GPTModel.forward = forward
