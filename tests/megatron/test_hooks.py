"""`tspec compile --target megatron`: hooks in a loop of the user's own, and found at Megatron's schedules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.jobs import done
from tests.megatron.jobs import TRAIN

HERE = Path(__file__).parent
RULES = "tests/megatron/whole_steps.tspec"
PARAMETERS = 52
"""Of the whole model."""


def compiled(folder: Path, specs: str, *options: str) -> str:
    """Hooks of a spec for Megatron."""
    hooks = str(folder / "hooks.py")
    asked = ("compile", specs, "--target", "megatron", *options, "-o", hooks)
    ended = done("-m", "tspec", *asked)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return hooks


@pytest.mark.slow
@pytest.mark.gloo
def test_hooks_are_called_in_a_loop_of_ones_own(tmp_path: Path) -> None:
    """The steps are those that the loop numbers, from 11; rules on `finalize_model_grads` hear of it."""
    ended = done("tests/megatron/own_loop.py", compiled(tmp_path, RULES), "steps=3")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "step 12 rank 0: whole_steps.no_step_is_the_twelfth" in ended.stderr
    decided = 3 * (PARAMETERS + 3)
    assert f"1 violated, 3 held. {decided} instances, {decided} decided" in ended.stderr


TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2")


def on_two_ranks(
    hooks: str, *options: str, script: str = "tests/megatron/own_loop.py"
) -> tuple[int, str]:
    """The loop under torchrun: its status, and what it says on standard error."""
    ended = done(*TORCHRUN, script, hooks, *options)
    assert "internal error" not in ended.stderr
    return ended.returncode, ended.stderr


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
@pytest.mark.parametrize("layout", ["tp=2,steps=3", "dp=2,bf16,steps=3"])
def test_the_megatron_pack_is_silent_in_a_sound_loop(layout: str, tmp_path: Path) -> None:
    status, said = on_two_ranks(compiled(tmp_path, "specs/megatron"), layout)
    assert status == 0, said
    assert "49 rules: 0 violated" in said


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
def test_passes_of_a_loop_without_schedules_are_microbatches() -> None:
    """Four of them in each step, so a layer that is called in each of them was not run again."""
    packs = ("specs/megatron", "specs/essentials")
    ended = done(
        "-m", "tspec", "run", *packs, "--", "tests/megatron/own_loop.py", "none", "steps=2"
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "nothing found" in ended.stdout


@pytest.mark.slow
@pytest.mark.gloo
def test_a_loop_that_does_not_sum_norms_gradients_over_tp_is_stopped(tmp_path: Path) -> None:
    """Under sequence parallelism `finish_grad_sync` is not all that `finalize_model_grads` does."""
    status, said = on_two_ranks(compiled(tmp_path, "specs/megatron"), "tp=2,sp,steps=3")
    assert status == 1
    found = "decoder.layers.0.input_layernorm.weight std.megatron.gradients_of_copies_agree"
    assert f"step 11 rank 0: {found}" in said
    assert "rank 1: stopped in step 11" in said


@pytest.mark.slow
@pytest.mark.gloo
def test_run_finds_the_same_at_the_schedules() -> None:
    ended = done("-m", "tspec", "run", RULES, "--", TRAIN, "bf16,steps=13")
    decided = 13 * (PARAMETERS + 3)
    assert "step 12" in ended.stdout
    assert "1 violated, 3 held" in ended.stdout and f"{decided:,} decided" in ended.stdout


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
def test_hooks_that_the_environment_names_check_a_script_that_is_not_edited(tmp_path: Path) -> None:
    """Both ranks that the launcher starts are checked, and the launcher itself says nothing."""
    hooks = compiled(tmp_path, "specs/megatron")
    site = done("-m", "tspec.site").stdout.strip()
    job = (TRAIN, "tp=2,sp,steps=3", "--bug", "final_norm_not_marked")
    ended = done(*TORCHRUN, *job, PYTHONPATH=site, TSPEC_HOOKS=hooks)
    rule = "std.megatron.gradients_of_copies_agree"
    assert ended.returncode == 1
    assert f"step 1 rank 0: decoder.final_layernorm.weight {rule}" in ended.stderr
    assert f"rank 1: stopped in step 1 by {rule}" in ended.stderr
    assert "nothing was checked" not in ended.stderr


SCHEDULED = "tests/megatron/scheduled.py"


def decided(said: str) -> str:
    """The number of instances decided, of the summary of a job without findings."""
    found = re.search(r"nothing found; 49 rules: 0 violated.* ([\d,]+) decided", said)
    assert found is not None, said
    return found[1]


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
def test_a_block_of_hooks_finds_steps_at_the_schedules(tmp_path: Path) -> None:
    hooks = compiled(tmp_path, "specs/megatron")
    status, said = on_two_ranks(hooks, "tp=2,sp,steps=3", "install", script=SCHEDULED)
    assert status == 0, said
    assert int(decided(said).replace(",", "")) > 500


@pytest.mark.slow
@pytest.mark.gloo
def test_chunks_of_a_virtual_pipeline_are_attached(tmp_path: Path) -> None:
    """As much is decided where the script numbers its steps as where they are found."""
    hooks = compiled(tmp_path, "specs/megatron")
    said = {}
    for way in ("install", "attach"):
        status, told = on_two_ranks(hooks, "pp=2,virtual=2,steps=3", way, script=SCHEDULED)
        assert status == 0, told
        said[way] = decided(told)
    assert said["attach"] == said["install"]


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
def test_a_job_that_fits_what_was_given_is_checked_as_without(tmp_path: Path) -> None:
    job = ("tp=2,sp,steps=3", "install")
    said = []
    for options in ((), ("--given", "tp=2")):
        hooks = compiled(tmp_path, "specs/megatron", *options)
        status, told = on_two_ranks(hooks, *job, script=SCHEDULED)
        assert status == 0 and "compiled for" not in told, told
        said.append(decided(told))
    assert said[0] == said[1]


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
@pytest.mark.parametrize(
    ("given", "layout", "has"), [("2", "steps=2", "1"), ("1", "tp=2,steps=2", "2")]
)
def test_a_job_that_does_not_fit_what_was_given_is_an_error(
    given: str, layout: str, has: str
) -> None:
    run = ("-m", "tspec", "run", "specs/megatron", "--given", f"tp={given}")
    ended = done(*run, "--", TRAIN, layout)
    assert ended.returncode == 2, ended.stderr
    assert f"compiled for tp={given}, and this job has tp={has}" in ended.stderr
    assert "tspec failed: the rules were compiled for" in ended.stdout
    assert "nothing found, but some of it was not looked at" in ended.stdout


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
@pytest.mark.parametrize(
    ("before", "after"), [(TORCHRUN, ()), ((), ("--start", "spawn"))], ids=["torchrun", "spawn"]
)
def test_ranks_that_torchrun_or_the_script_starts_are_checked(
    before: tuple[str, ...], after: tuple[str, ...]
) -> None:
    run = (*before, "-m", "tspec", "run", "specs/megatron", "--", TRAIN)
    ended = done(*run, "tp=2,sp,steps=3", "--bug", "final_norm_not_marked", *after)
    assert ended.returncode == 1, ended.stderr
    assert ended.stdout.count("std.megatron.gradients_of_copies_agree") == 1
    assert "step 1, ranks 0, 1 (tp 0-1): decoder.final_layernorm.weight" in ended.stdout
