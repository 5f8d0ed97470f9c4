"""A run of two ranks that saves and goes on: the packs are silent, and name what was left behind or written wrongly."""

from pathlib import Path

import pytest

from tests.families import EXHAUSTIVE, family
from tests.rules.test_collectives import run

JOB = Path(__file__).with_name("resumed_job.py")
OF_PARTS = Path(__file__).with_name("resumed_parts_job.py")
OF_SHARDS = Path(__file__).with_name("resumed_shards_job.py")
PACKS = ("essentials", "communication", "data_parallel", "checkpoints")
PACKS_OF_PARTS = ("essentials", "communication", "checkpoints")
FAULTS_OF_CHECKPOINTS = (
    ("schedule", "resumed_counters_go_on"),
    ("average", "resumed_counters_go_on"),
    ("model", "resumed_counters_go_on"),
    ("scaler", "resumed_counters_go_on"),
    ("rng", "resumed_counters_go_on"),
    ("python", "resumed_counters_go_on"),
    ("numpy", "resumed_counters_go_on"),
    ("weights", "resumed_counters_go_on"),
    ("schedule_beside", "resumed_counters_go_on"),
    ("counters", "resumed_counters_go_on"),
    ("sampler", "resumed_counters_go_on"),
    ("one_file", "ranks_save_to_files_of_their_own"),
)
"""A fault of `resumed_job.py`, and the rule that finds it when it is saved again."""
EARLIER = {
    "schedule": {"resumed_schedules_go_on"},
    "schedule_beside": {"resumed_schedules_go_on"},
    "model": {"averages_begin_with_their_weights"},
}
"""Rules that find a fault too, before it is saved again: when the schedule makes its first step, and when the average
that was restored moves towards a model that was not.
"""
SAMPLE = {"weights", "one_file"}
"""Beside `average`, which is an object: tensors and counters; `make test-all` has random numbers. Generators of Python
and numpy are read in `tests/runtime/live/test_twisters.py`.
"""
FAULTS_OF_PARTS = (
    ("first", "ranks_go_on_from_files_of_their_own"),
    ("moments", "ranks_go_on_from_files_of_their_own"),
)
"""A fault of `resumed_parts_job.py`, and the rule that finds it."""
FAULTS_OF_SHARDS = (
    ("schedule", "resumed_counters_go_on"),
    ("counters", "resumed_counters_go_on"),
)
"""A fault of `resumed_shards_job.py`, and the rule that finds it."""


@pytest.mark.gloo
@pytest.mark.parametrize(
    "kind",
    ["", "one_process", pytest.param("beside", marks=EXHAUSTIVE)],
)
def test_a_sound_run_that_goes_on(kind, tmp_path):
    done, found = run(tmp_path, kind, packs=PACKS, job=JOB)
    assert (done.returncode, found) == (0, set()), done.stdout + done.stderr


@pytest.mark.gloo
@pytest.mark.parametrize("fault", family(dict(FAULTS_OF_CHECKPOINTS), SAMPLE, {"average"}))
def test_what_is_left_behind(fault, tmp_path):
    done, found = run(tmp_path, fault, packs=PACKS, job=JOB)
    assert done.returncode == 1, done.stdout + done.stderr
    wanted = {dict(FAULTS_OF_CHECKPOINTS)[fault], *EARLIER.get(fault, ())}
    assert {each for each, _ in found} == wanted


@pytest.mark.slow
@pytest.mark.gloo
@pytest.mark.parametrize("kind", ["", pytest.param("replicas", marks=pytest.mark.exhaustive)])
def test_ranks_that_save_a_file_each_and_go_on(kind, tmp_path):
    done, found = run(tmp_path, kind, packs=PACKS_OF_PARTS, job=OF_PARTS)
    assert (done.returncode, found) == (0, set()), done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.gloo
@pytest.mark.parametrize("fault", family(dict(FAULTS_OF_PARTS), {"moments"}))
def test_a_rank_that_goes_on_from_the_part_of_another(fault, tmp_path):
    done, found = run(tmp_path, fault, packs=PACKS_OF_PARTS, job=OF_PARTS)
    assert done.returncode == 1, done.stdout + done.stderr
    assert {each for each, _ in found} == {dict(FAULTS_OF_PARTS)[fault]}


@pytest.mark.slow
@pytest.mark.gloo
def test_a_sound_run_that_goes_on_from_a_distributed_checkpoint(tmp_path):
    done, found = run(tmp_path, packs=PACKS, job=OF_SHARDS)
    assert (done.returncode, found) == (0, set()), done.stdout + done.stderr


@pytest.mark.gloo
@pytest.mark.parametrize("fault", family(dict(FAULTS_OF_SHARDS), {"schedule"}))
def test_what_is_left_behind_of_a_distributed_checkpoint(fault, tmp_path):
    done, found = run(tmp_path, fault, packs=PACKS, job=OF_SHARDS)
    assert done.returncode == 1, done.stdout + done.stderr
    assert {each for each, _ in found} == {dict(FAULTS_OF_SHARDS)[fault]}
