"""A rank sorts the tokens that arrive by experts as if its peers were in the opposite order: tokens go to other experts.

Source: the mechanism of DeepSpeed issue 5794 (counts of an all-to-all that do not fit together), in megatron-core's dispatcher, where the
number of tokens is right and the order of ranks in the counts is not.
"""

from __future__ import annotations

from typing import Any

PACK = "moe"
LAYOUT = "dp=2,experts=4,ep=2"
FOUND = ("tokens_are_sorted_as_they_were_sent", 1, (0, 1), "sort_arrived #0")


def put_in() -> None:
    """The counts of peers are reversed after they were gathered."""
    from megatron.core.transformer.moe.token_dispatcher import MoEAlltoAllTokenDispatcher

    original = MoEAlltoAllTokenDispatcher.preprocess

    def preprocess(self: Any, routing_map: Any) -> Any:
        found = original(self, routing_map)
        counts = self.num_global_tokens_per_local_expert
        self.num_global_tokens_per_local_expert = counts.flip(0)
        return found

    MoEAlltoAllTokenDispatcher.preprocess = preprocess
