"""Rules of `std.moe` that other tests of megatron-core leave out: what is sent fits together, and all ranks have one capacity."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.first_found import Found, first_found
from tests.jobs import done
from tests.megatron.jobs import TRAIN
from tests.sweeps import held_in

SPECS = ("tests/megatron/capacities.tspec", "specs/moe")
JOB = (TRAIN, "dp=2,experts=4,ep=2,capacity,steps=3")


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
def test_a_sound_job_decides_both(tmp_path: Path) -> None:
    cases = tmp_path / "report.xml"
    ended = done("-m", "tspec", "run", *SPECS, "--report", str(cases), "--", *JOB)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert {"std.moe.capacities_agree", "std.moe.dispatched_counts_fit"} <= held_in(cases)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
def test_another_capacity_on_one_rank_is_found(tmp_path: Path) -> None:
    """By the rule of DeepSpeed's function too, if that is megatron-core's."""
    found = first_found(SPECS, (*JOB, "--bug", "capacity_by_rank"), tmp_path / "report.json")
    assert found == Found("capacities_agree", 1, (0, 1), "capacity #0")
