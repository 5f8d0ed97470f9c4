"""Jobs of this folder against one rank: silent if clean, and named where a fault is.

States of optimizers, also of `ZeroRedundancyOptimizer`; float16 and eight bits; context parallelism; torch's own
activation checkpointing, compiler and pipelines; an encoder and a decoder under a plan of placements; sequence and expert
parallelism by hand.
"""

from __future__ import annotations

import pytest

from tests.equivalence.jobs import JOBS, chosen
from tests.families import family
from tests.jobs import done

SAMPLE = (
    "states --new beta2",
    "low_precision --precision float8 amax",
    "context_parallel --dtype float32 local_mask",
    "engines --engine blocks --dtype float32 backward",
    "pipelined --schedule 1F1B --dtype float32 stale",
    "expert_parallel --dtype float32 received",
    "tied unsummed",
)
"""States, precisions, ways to cut and engines, in one process: to import torch takes as long as a job."""
ALL = (
    *(
        "states",
        "first_weights",
        "main_copies",
        "data_parallel",
        "low_precision --precision float16",
    ),
    *("low_precision --precision float8", "context_parallel --dtype", "context_parallel 4 ranks"),
    *(f"engines --engine {each}" for each in ("checkpoint", "reentrant", "wrapper")),
    *(f"engines --engine {each}" for each in ("blocks", "inductor", "model", "fsdp")),
    *(f"pipelined --schedule {each} --dtype" for each in ("GPipe", "1F1B")),
    "pipelined --schedule 1F1B --gradients",
    *("seq2seq --dtype", "sequence_parallel --dtype"),
    *("expert_parallel --dtype", "expert_parallel --numbered", "padded --dtype", "padded 4 ranks"),
    *("clipped --dtype", "clipped --plan", "clipped --by-hand", "tied"),
)


def test_each_job_has_a_name_of_its_own_and_is_in_a_family() -> None:
    assert len({job.name for job in JOBS}) == len(JOBS)
    assert set(chosen(ALL)) == set(JOBS)


@pytest.mark.gloo
@pytest.mark.parametrize(
    "texts", family((SAMPLE, *((each,) for each in ALL)), {", ".join(SAMPLE)}, name=", ".join)
)
def test_clean_jobs_are_silent_and_faults_are_found_where_they_are(texts: tuple[str, ...]) -> None:
    ended = done("-m", "tests.equivalence.jobs", *texts)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    lines = ended.stdout.splitlines()
    names = [line.split(": ")[0] for line in lines if not line.startswith(" ")]
    assert names == [job.name for job in chosen(texts)]
