"""Jobs that save their state, load it, and go on: packs are silent, and find what was not brought back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import sweeps
from tests.families import family
from tests.first_found import Found, first_found, matches
from tests.jobs import done
from tests.megatron.jobs import TRAIN
from tests.megatron.layouts import Layout
from tests.megatron.sweep import PACKS

RESUMED = str(Path(__file__).with_name("resumed.py"))
STEPS = 4
CLEAN = (
    "tp=2 files",
    "tp=2,bf16 shards",
    "dp=2,zero,bf16 files",
    "dp=2,zero,bf16 shards",
    "pp=2,virtual=2,untied files",
)
SAMPLE = {"dp=2,zero,bf16 shards"}
"""The other way of saving has faults that are found."""
FAULTS = {
    "tp=2 files moments_left_out": Found("resumed_updates_have_moments", 1, (0, 1), ""),
    "dp=2 files moments_left_out_on_one_rank": Found(
        "ranks_resume_at_one_step", 0, (0, 1), "optimizer.0, load_optimizer #0"
    ),
    "tp=2 files piece_of_another_rank": Found(
        "shards_differ", STEPS + 1, (0, 1), "embedding.word_embeddings.weight"
    ),
    "tp=2 files layer_left_out": Found(
        "loading_leaves_nothing_out", 0, (0, 1), "load_state_dict #0"
    ),
    "tp=2 files layer_removed": Found(
        "parameters_with_loaded_moments_are_loaded", 0, (0, 1), "load_optimizer #0"
    ),
    "dp=2,zero,bf16 shards main_copy_left_out": Found(
        "first_update_begins_at_the_model_copy", 1, (0, 1), "decoder.layers.1.mlp.linear_fc2.weight"
    ),
    "dp=2,zero,bf16 files stale_weights": Found(
        "first_update_begins_at_the_model_copy", STEPS + 1, (0, 1), "decoder."
    ),
    "tp=2,bf16 files streams_of_another_rank": Found(
        "tensor_parallel_streams_differ", STEPS + 1, (0, 1), "model-parallel-rng"
    ),
}
FOUND = {"dp=2,zero,bf16 files stale_weights"}


def command(layout: str, way: str, folder: Path, *options: str) -> tuple[str, ...]:
    """The script of a job, and its options."""
    folder.mkdir(exist_ok=True)
    return RESUMED, f"{layout},steps={STEPS}", str(folder), "--way", way, *options


def losses(*script: str, report: Path) -> list[dict[str, float]]:
    """Loss and gradient norm of each step of a job."""
    ended = done(*script, "--report", str(report))
    assert ended.returncode == 0, ended.stderr
    made: list[dict[str, float]] = json.loads(report.read_text())
    return made


@pytest.mark.gloo
@pytest.mark.parametrize("job", family(CLEAN, SAMPLE))
def test_a_job_goes_on_to_the_bit(job: str, tmp_path: Path) -> None:
    layout, way = job.split()
    report, script = tmp_path / "made.json", command(layout, way, tmp_path / "saved")
    whole = losses(TRAIN, f"{layout},steps={2 * STEPS}", report=report)
    assert losses(*script, report=report) == whole[:STEPS]
    assert losses(*script, report=report) == whole[STEPS:]


@pytest.mark.gloo
@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("job", CLEAN, ids=str)
def test_packs_are_silent(job: str, tmp_path: Path) -> None:
    layout, way = job.split()
    script = command(layout, way, tmp_path / "saved")
    for _ in ("saves", "loads"):
        found = sweeps.swept(job, Layout.parse(layout).world, PACKS, script, tmp_path)
        assert found.findings == ()
        assert found.decided > 1000


@pytest.mark.gloo
@pytest.mark.parametrize("name", family(FAULTS, FOUND))
def test_what_was_not_brought_back_is_reported(name: str, tmp_path: Path) -> None:
    layout, way, bug = name.split()
    script = command(layout, way, tmp_path / "saved")
    assert done(*script).returncode == 0
    specs = [f"specs/{pack}" for pack in PACKS]
    found = first_found(specs, (*script, "--bug", bug), tmp_path / "report.json")
    assert matches(found, FAULTS[name]), found
