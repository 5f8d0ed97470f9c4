"""Rotary positions are not cut for context-parallel ranks: each turns its queries and keys by the angles of the first tokens.

Source: the class of a table of positions that is as long as a rank's part, in megatron-core's `get_pos_emb_on_this_cp_rank`.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "cp=2,swiglu,rms,rope,nobias"
FOUND = ("context_parallel_ranks_turn_by_other_angles", 1, (0, 1), "pass_layers")


def put_in() -> None:
    """The first rows are taken, as many as the rank has tokens."""
    from megatron.core.models.common.embeddings import rotary_pos_embedding

    def first_rows(table: Any, dimension: int, group: Any) -> Any:
        return table.narrow(dimension, 0, table.shape[dimension] // group.size())

    rotary_pos_embedding.get_pos_emb_on_this_cp_rank = first_rows
