"""Puts a wrong scale of the scores into megatron-core's attention, and prints the modules that are wrong by themselves.

    python -m tests.equivalence.attention_scale JOB

The layout is one of those that ship. As a rank of a job it trains, with the fault where attention is cut over ranks.
"""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.megatron import train
from tests.megatron.cpu import run_on_cpu


def put_in() -> None:
    """Scores are twice as large under tensor parallelism."""
    from megatron.core import parallel_state
    from megatron.core.transformer.dot_product_attention import DotProductAttention

    made = DotProductAttention.__init__

    def doubled(self, *args, **options):
        made(self, *args, **options)
        self.softmax_scale *= parallel_state.get_tensor_model_parallel_world_size()

    DotProductAttention.__init__ = doubled


def main() -> None:
    from tests.equivalence.forked import forked
    from tests.equivalence.megatron_sweep import trial
    from tspec.equivalence.check import compare
    from tspec.equivalence.localize import localize
    from tspec.equivalence.runs import run_candidate, run_reference

    run_on_cpu()
    found = trial(sys.argv[1])
    asked = replace(found, candidate=(__file__, *found.candidate[1:]), localize=True)
    with tempfile.TemporaryDirectory() as name:
        known = run_reference(asked, Path(name), forked)
        candidate = run_candidate(asked, known.recording, Path(name), start=forked)
        outcome = compare(asked, known, candidate)
        for each in localize(asked, known, candidate, Path(name), forked).suspects:
            print(f"{each.module}: {each.part}")
    first = min(outcome.wrong, key=lambda each: each.order).name
    print(f"first: {first.kind} {first.name}")


if __name__ == "__main__":
    if "RANK" in os.environ:
        put_in()
        train.main()
    else:
        main()
