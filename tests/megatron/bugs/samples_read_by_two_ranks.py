"""Each data-parallel rank begins at its own sample and goes on by one: all micro-batches but the first are read by two ranks, and half of the data by none.

Source: the class of a sampler whose stride has no data-parallel size in it (`MegatronPretrainingSampler` advances by `micro_batch_times_data_parallel_size`).
"""

from __future__ import annotations

from typing import Any

LAYOUT = "dp=2"
FOUND = None


def put_in() -> None:
    """The loop's batches come from another sampler."""
    from collections.abc import Iterator

    from tests.megatron import job

    original = job.batches

    def batches(layout: Any, made: int = 0) -> Iterator[Any]:
        rank, size = job.parallel_state.get_data_parallel_rank(), layout.dp
        kept = job.sample

        def sample(layout: Any, number: int) -> Any:
            whole, row = divmod(number, layout.microbatch)
            micro = whole // size
            return kept(layout, (micro + rank) * layout.microbatch + row)

        job.sample = sample
        return original(layout, made)

    job.batches = batches
