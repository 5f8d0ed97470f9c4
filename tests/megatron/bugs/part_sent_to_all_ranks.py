"""The tokens and labels that the first context-parallel rank has cut for itself are sent to the others: the other parts are never read.

Source: the class of a batch that is sent to other ranks after `get_batch_on_this_cp_rank` of megatron-core has cut it.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "cp=2"
FOUND = ("context_parallel_ranks_read_other_tokens", 1, (0, 1), "")


def put_in() -> None:
    """A model reads what the first rank of its context-parallel group has."""
    import torch.distributed as dist
    from megatron.core import parallel_state
    from megatron.core.models.gpt import GPTModel

    original = GPTModel.forward

    def forward(self: Any, input_ids: Any, position_ids: Any, *args: Any, **options: Any) -> Any:
        group = parallel_state.get_context_parallel_group()
        sent = [each.clone() for each in (input_ids, options.pop("labels"))]
        for each in sent:
            dist.broadcast(each, dist.get_global_rank(group, 0), group=group)
        return original(self, sent[0], position_ids, *args, labels=sent[1], **options)

    GPTModel.forward = forward
