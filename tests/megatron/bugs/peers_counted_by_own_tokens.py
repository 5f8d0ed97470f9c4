"""A rank takes its own counts of tokens for those of its peers, and reads rows that nobody sent.

Source: TrainCheck B16, DeepSpeed issue 5794 (sizes of an all-to-all that do not fit together), in megatron-core's dispatcher. Gloo ends a job whose
sizes do not fit, so tokens are sent in slots of one size, as layers with a capacity send them.
"""

from __future__ import annotations

from typing import Any

PACK = "moe"
LAYOUT = "dp=2,experts=4,ep=2"
FOUND = ("dispatched_counts_fit", 1, (0, 1), "dispatch #0")


def put_in() -> None:
    """Counts are not gathered, and messages have slots of one size."""
    from megatron.core.transformer.moe import token_dispatcher

    def own_counts(counts: Any, group: Any) -> Any:
        return counts.repeat(group.size())

    token_dispatcher.gather_from_sequence_parallel_region = own_counts
    send_in_slots()


def send_in_slots() -> None:
    """The dispatcher's all-to-all sends slots that are as long as the longest message, and cuts what arrives."""
    import torch
    import torch.distributed as dist
    from megatron.core.transformer.moe import token_dispatcher

    def exchanged(rows: Any, sent: list[int], expected: list[int], group: Any) -> Any:
        room = torch.tensor(max(*sent, *expected))
        dist.all_reduce(room, dist.ReduceOp.MAX, group)
        slots = rows.new_zeros(len(sent), int(room), *rows.shape[1:])
        for slot, part in zip(slots, rows.split(list(sent)), strict=True):
            slot[: len(part)] = part
        landed = torch.empty_like(slots)
        dist.all_to_all_single(landed, slots, group=group)
        return torch.cat([slot[:count] for slot, count in zip(landed, expected, strict=True)])

    class InSlots(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, group: Any, rows: Any, expected: Any, sent: Any) -> Any:
            ctx.group, ctx.expected, ctx.sent = group, expected, sent
            return exchanged(rows, sent, expected, group)

        @staticmethod
        def backward(ctx: Any, gradient: Any) -> Any:
            returned = exchanged(gradient.contiguous(), ctx.expected, ctx.sent, ctx.group)
            return None, returned, None, None

    token_dispatcher.all_to_all = InSlots.apply
