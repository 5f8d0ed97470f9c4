"""A loop passes as many micro-batches on each data-parallel rank as one rank alone would: a step has twice the samples that rates are made for.

Source: the class of a number of micro-batches without the data-parallel size in it (`global_batch_size` over `micro_batch_size * data_parallel_size` in Megatron-LM).
"""

from __future__ import annotations

from typing import Any

LAYOUT = "dp=2"
FOUND = ("rates_advance_by_the_batch", 1, (0, 1), "schedule.step")


def put_in() -> None:
    """Schedules are given the number times the data-parallel size."""
    from megatron.core import parallel_state
    from megatron.core.pipeline_parallel import schedules

    original = schedules.forward_backward_no_pipelining

    def loop(*, num_microbatches: int, **options: Any) -> Any:
        ranks = parallel_state.get_data_parallel_world_size()
        return original(num_microbatches=num_microbatches * ranks, **options)

    schedules.forward_backward_no_pipelining = loop
