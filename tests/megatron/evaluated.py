"""A job of `train.py` that also evaluates, by its schedule: before the first step, and after each second one.

python tests/megatron/evaluated.py tp=2,sp
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.megatron import train
from tests.megatron.layouts import Layout


def main() -> None:
    train.prepare(None)
    import torch
    from megatron.core.pipeline_parallel import get_forward_backward_func

    from tests.megatron import job

    def evaluate(made: job.Job) -> None:
        """Pass two micro-batches, without gradients."""
        layout, several = made.layout, made.layout.virtual > 1
        data = [job.batches(layout) for _ in made.chunks]
        for chunk in made.chunks:
            chunk.eval()
        with torch.no_grad():
            get_forward_backward_func()(
                forward_step_func=partial(job.forward_step, layout),
                data_iterator=data if several else data[0],
                model=made.chunks if several else made.chunks[0],
                num_microbatches=2,
                seq_length=layout.sequence,
                micro_batch_size=layout.microbatch,
                forward_only=True,
            )
        for chunk in made.chunks:
            chunk.train()

    def steps(
        layout: Layout, stepped: Callable[[], None] = lambda: None
    ) -> list[dict[str, float | None]]:
        made = job.job_of(layout)
        evaluate(made)
        found = []
        for number in range(layout.steps):
            found.append(made.step())
            if number % 2:
                evaluate(made)
            stepped()
        return found

    job.train = steps
    train.main()


if __name__ == "__main__":
    main()
