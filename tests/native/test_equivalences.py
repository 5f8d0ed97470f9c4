"""Torch's own modes of parallelism compared with one device: clean jobs are silent, and faults that no rule finds are found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.equivalence.judged import Job
from tests.families import family
from tests.jobs import done
from tests.native.equivalences import COMPARED, begins, chosen, ends, name_of
from tests.native.faults import FAULTS

PAGE = Path(__file__).parents[2] / "docs" / "native_equivalences.md"
SAMPLE = (
    "replicated plain divided_twice",
    "sharded fully stays_gathered",
    "tensor_parallel plain bias_twice",
    "pipelines tied unsummed",
)
"""One of each script, in one process: to import torch takes as long as a job."""
SCRIPTS = tuple((script,) for script in ("replicated", "sharded", "tensor_parallel", "pipelines"))


def test_each_fault_for_which_no_rule_speaks_is_compared() -> None:
    silent = {fault.name for fault in FAULTS if fault.expected is None}
    assert silent <= {name_of(job) for job in COMPARED}


@pytest.mark.gloo
@pytest.mark.parametrize("texts", family((SAMPLE, *SCRIPTS), {", ".join(SAMPLE)}, name=", ".join))
def test_clean_jobs_are_silent_and_faults_are_found_where_they_are(texts: tuple[str, ...]) -> None:
    ended = done("-m", "tests.native.equivalences", *texts)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    rows = [line for line in ended.stdout.splitlines() if line.startswith("| `")]
    assert len(rows) == len(chosen(texts)) > 3
    for job, row in zip(chosen(texts), rows, strict=True):
        assert row.startswith(begins(job)) and row.endswith(ends(job))


@pytest.mark.parametrize("job", COMPARED, ids=name_of)
def test_the_page_has_a_job_as_it_is_to_be_found(job: Job) -> None:
    [row] = [line for line in PAGE.read_text().splitlines() if line.startswith(begins(job))]
    assert row.endswith(ends(job))
