"""A core attention for context parallelism: each rank has two chunks of every sequence, and gathers the keys and values of all.

megatron-core leaves this to Transformer Engine, which does not run on CPU.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.transformer.dot_product_attention import DotProductAttention

SEQUENCE = 0
"""The dimension of queries, keys and values that is cut."""


class ContextParallelAttention(DotProductAttention):
    """Attention of this rank's queries to the keys and values of the whole sequence."""

    def __init__(self, config: Any, *args: Any, **kwargs: Any) -> None:
        alone = copy.copy(config)
        alone.context_parallel_size = 1  # the base class refuses others
        super().__init__(alone, *args, **kwargs)
        self.config = config

    def forward(self, query: Any, key: Any, value: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        """`query`, `key`, `value`: [sequence of the rank, batch, heads, head]. The mask has the rank's rows and all columns."""
        group = parallel_state.get_context_parallel_group()
        whole = (Gather.apply(key, group), Gather.apply(value, group))
        return super().forward(query, *whole, *args, **kwargs)


class Gather(torch.autograd.Function):
    """The whole sequence in its order, from the parts of all ranks. The gradient of a part is summed over the ranks."""

    @staticmethod
    def forward(ctx: Any, part: torch.Tensor, group: Any) -> torch.Tensor:
        ranks = dist.get_world_size(group)
        parts = [torch.empty_like(part) for _ in range(ranks)]
        dist.all_gather(parts, part.contiguous(), group=group)
        chunks = [half for each in parts for half in each.chunk(2, SEQUENCE)]
        ctx.group, ctx.places = group, [_places(rank, ranks) for rank in range(ranks)]
        held = [place for places in ctx.places for place in places]
        return torch.cat([chunks[held.index(place)] for place in range(2 * ranks)], SEQUENCE)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        total = gradient.contiguous().clone()
        dist.all_reduce(total, group=ctx.group)
        mine = ctx.places[dist.get_rank(ctx.group)]
        chunks = total.chunk(2 * len(ctx.places), SEQUENCE)
        return torch.cat([chunks[place] for place in mine], SEQUENCE), None


def _places(rank: int, ranks: int) -> tuple[int, int]:
    """The chunks of a rank, as `get_batch_on_this_cp_rank` cuts a batch: one from the start, and the one as far from the end."""
    return rank, 2 * ranks - 1 - rank
