"""What torch cuts by itself agrees with one rank: `fully_shard`, and a plan of DTensor placements."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.equivalence.references import references_of
from tests.equivalence.trials import trial_of
from tspec.equivalence.check import compare
from tspec.equivalence.outcome import Outcome
from tspec.equivalence.runs import run_candidate
from tspec.equivalence.sides import Trial
from tspec.resolve import load

HERE = Path(__file__).resolve().parent
OPTIONS = {
    "fully_sharded": (),
    "fully_sharded_in_two_passes": ("--accumulate",),
    "unevenly_sharded": ("--uneven",),
    "tensor_parallel": ("--plan",),
    "rows_of_a_norm": ("--rows",),
}
"""Of each equivalence the options of the script; faults are added to them, and change nothing on one rank."""

Judge = Callable[..., Outcome]


def trial(name: str, *faults: str) -> Trial:
    program = load([HERE / "placements.tspec"]).program
    assert program is not None
    [declaration] = (each for each in program.equivalences if each.name == name)
    return trial_of(declaration, (str(HERE / "placements.py"), *OPTIONS[name], *faults))


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Judge:
    """The outcome of an equivalence with faults in its candidate."""
    references = references_of(trial, tmp_path_factory)

    def judge(name: str, *faults: str) -> Outcome:
        asked, reference = trial(name, *faults), references(name)
        folder = tmp_path_factory.mktemp("candidate")
        return compare(asked, reference, run_candidate(asked, reference.recording, folder))

    return judge


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
@pytest.mark.parametrize(
    ("name", "tensors"),
    [
        ("fully_sharded", 15),
        ("fully_sharded_in_two_passes", 22),
        ("unevenly_sharded", 15),
        ("tensor_parallel", 15),
    ],
)
def test_clean_jobs_are_silent(name: str, tensors: int, judged: Judge) -> None:
    found = judged(name)
    assert (found.wrong, found.faults, found.unplaced) == ((), (), ())
    assert len(found.comparisons) == tensors


@pytest.mark.slow
@pytest.mark.gloo
@pytest.mark.parametrize(
    "fault",
    [
        pytest.param((), id="clean", marks=pytest.mark.exhaustive),
        pytest.param(("--part",), id="fault"),
    ],
)
def test_a_gradient_that_is_a_sum_that_ranks_owe_is_added_up(
    fault: tuple[str, ...], judged: Judge
) -> None:
    """As the optimizer adds it up, of a norm under sequence parallelism."""
    found = judged("rows_of_a_norm", *fault)
    assert len(found.comparisons) == 21
    named = {f"{each.name.kind} {each.name.name}" for each in (*found.wrong, *found.faults)}
    assert named == ({"param_grads norm.weight", "params norm.weight"} if fault else set())


@pytest.mark.slow
@pytest.mark.gloo
@pytest.mark.parametrize(
    "fault", ["--never", pytest.param("--cleared", marks=pytest.mark.exhaustive)]
)
def test_gradients_of_an_accumulation_that_are_lost(fault: str, judged: Judge) -> None:
    """`fully_shard` never reduces them, or those of the first micro-batch are cleared."""
    found = judged("fully_sharded_in_two_passes", fault)
    named = {f"{each.name.kind} {each.name.name}" for each in (*found.wrong, *found.faults)}
    assert {"param_grads fc1.weight", "params fc1.weight"} <= named


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
def test_gradients_that_are_summed_instead_of_averaged(judged: Judge) -> None:
    found = judged("fully_sharded", "--sum")
    assert found.first is not None
    assert (found.first.name.kind, found.first.name.name) == ("param_grads", "fc1.weight")
    assert found.first.evidence.says == "the candidate is 2 times the reference"
    assert {each.name.kind for each in found.wrong} >= {"param_grads"}
