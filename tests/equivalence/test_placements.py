"""What torch cuts by itself agrees with one rank: `fully_shard`, and a plan of DTensor placements."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.equivalence.trials import trial_of
from tspec.equivalence.check import Outcome, compare, run_candidate, run_reference
from tspec.resolve import load

HERE = Path(__file__).resolve().parent


def judged(folder: Path, name: str, *options: str) -> Outcome:
    program = load([HERE / "placements.tspec"]).program
    assert program is not None
    [declaration] = (each for each in program.equivalences if each.name == name)
    trial = trial_of(declaration, (str(HERE / "placements.py"), *options))
    reference = run_reference(trial, folder)
    return compare(trial, reference, run_candidate(trial, reference.recording, folder))


@pytest.mark.slow
@pytest.mark.gloo
@pytest.mark.parametrize(
    ("name", "options", "tensors"),
    [
        ("fully_sharded", (), 15),
        ("fully_sharded_in_two_passes", ("--accumulate",), 22),
        ("unevenly_sharded", ("--uneven",), 15),
        ("tensor_parallel", ("--plan",), 15),
    ],
)
def test_clean_jobs_are_silent(
    name: str, options: tuple[str, ...], tensors: int, tmp_path: Path
) -> None:
    found = judged(tmp_path, name, *options)
    assert (found.wrong, found.faults, found.unplaced) == ((), (), ())
    assert len(found.comparisons) == tensors


@pytest.mark.gloo
@pytest.mark.parametrize(
    "fault",
    [pytest.param((), marks=pytest.mark.slow), ("--part",)],
    ids=["clean", "fault"],
)
def test_a_gradient_that_is_a_sum_that_ranks_owe_is_added_up(
    fault: tuple[str, ...], tmp_path: Path
) -> None:
    """As the optimizer adds it up, of a norm under sequence parallelism."""
    found = judged(tmp_path, "rows_of_a_norm", "--rows", *fault)
    assert len(found.comparisons) == 21
    named = {f"{each.name.kind} {each.name.name}" for each in (*found.wrong, *found.faults)}
    assert named == ({"param_grads norm.weight", "params norm.weight"} if fault else set())


@pytest.mark.slow
@pytest.mark.gloo
@pytest.mark.parametrize("fault", ["--never", "--cleared"])
def test_gradients_of_an_accumulation_that_are_lost(fault: str, tmp_path: Path) -> None:
    """`fully_shard` never reduces them, or those of the first micro-batch are cleared."""
    found = judged(tmp_path, "fully_sharded_in_two_passes", "--accumulate", fault)
    named = {f"{each.name.kind} {each.name.name}" for each in (*found.wrong, *found.faults)}
    assert {"param_grads fc1.weight", "params fc1.weight"} <= named


@pytest.mark.slow
@pytest.mark.gloo
def test_gradients_that_are_summed_instead_of_averaged(tmp_path: Path) -> None:
    found = judged(tmp_path, "fully_sharded", "--sum")
    assert found.first is not None
    assert (found.first.name.kind, found.first.name.name) == ("param_grads", "fc1.weight")
    assert found.first.evidence.says == "the candidate is 2 times the reference"
    assert {each.name.kind for each in found.wrong} >= {"param_grads"}
