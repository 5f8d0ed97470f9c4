"""Gradients are reduced over the data-parallel ranks alone: context-parallel ranks keep those of their own part of a sequence.

Source: the class of `get_data_parallel_group` of megatron-core without `with_context_parallel`.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "cp=2"
FOUND = ("data_parallel_gradients_agree", 1, (0, 1), "embedding.word_embeddings.weight")


def put_in() -> None:
    """Models are wrapped over the group that has no context-parallel ranks."""
    from megatron.core.process_groups_config import ProcessGroupCollection

    original = ProcessGroupCollection.setup_process_groups_for_ddp

    def groups(*args: Any, **kwargs: Any) -> dict[str, Any]:
        found = original(*args, **kwargs)
        return found | {"dp_cp_group": found["dp_group"], "intra_dp_cp_group": found["dp_group"]}

    ProcessGroupCollection.setup_process_groups_for_ddp = staticmethod(groups)
