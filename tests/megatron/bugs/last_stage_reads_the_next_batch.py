"""The last stage reads one micro-batch ahead of the first: the labels belong to other tokens.

Source: the class of a data iterator that one stage has advanced, as by a look at the first batch, and the others have not.
"""

from __future__ import annotations

from typing import Any

LAYOUT = "pp=2"
FOUND = ("stages_read_the_same_tokens", 1, (0, 1), "")


def put_in() -> None:
    """The last stage leaves its first micro-batch out."""
    from tests.megatron import job

    original = job.batches

    def batches(layout: Any, made: int = 0) -> Any:
        found = original(layout, made)
        if job.parallel_state.is_pipeline_last_stage():
            next(found)
        return found

    job.batches = batches
