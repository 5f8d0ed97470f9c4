"""A tensor-parallel transformer against one rank: the clean job is silent, and each fault is found where it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.equivalence.references import references_of
from tests.equivalence.trials import trial_of
from tests.families import family
from tspec.equivalence.check import compare
from tspec.equivalence.localize import localize
from tspec.equivalence.outcome import Outcome
from tspec.equivalence.runs import ReferenceRecordings, run_candidate
from tspec.equivalence.sides import Trial
from tspec.resolve import load

HERE = Path(__file__).resolve().parent


def trial(dtype: str, fault: str = "") -> Trial:
    program = load([HERE / "transformer.tspec"]).program
    assert program is not None
    [declaration] = program.equivalences
    script = str(HERE / "transformer.py")
    return trial_of(declaration, (script, "--dtype", dtype, "--fault", fault))


@pytest.fixture(scope="module")
def references(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], ReferenceRecordings]:
    return references_of(trial, tmp_path_factory)


def judged(reference: ReferenceRecordings, dtype: str, fault: str, folder: Path) -> Outcome:
    asked = trial(dtype, fault)
    return compare(asked, reference, run_candidate(asked, reference.recording, folder))


@pytest.mark.slow
@pytest.mark.gloo
@pytest.mark.parametrize("dtype", family(("float32", "bfloat16"), {"float32"}))
def test_the_clean_job_is_silent(
    dtype: str, references: Callable[[str], ReferenceRecordings], tmp_path: Path
) -> None:
    found = judged(references(dtype), dtype, "", tmp_path)
    assert (found.wrong, found.faults, found.unplaced) == ((), (), ())
    assert len(found.comparisons) == 99


@pytest.mark.slow
@pytest.mark.gloo
@pytest.mark.parametrize(
    ("dtype", "fault", "kind", "name"),
    [
        ("float32", "scale", "outputs", "blocks.1.fc2"),
        *(
            pytest.param(*each, marks=pytest.mark.exhaustive)  # see test_sketch.py
            for each in (
                ("float32", "shard", "outputs", "blocks.1.attention.proj"),
                ("bfloat16", "all_reduce", "outputs", "blocks.1.fc2"),
                ("bfloat16", "shard", "outputs", "blocks.1.attention.proj"),
            )
        ),
    ],
)
def test_the_first_wrong_tensor_is_that_of_the_fault(
    dtype: str,
    fault: str,
    kind: str,
    name: str,
    references: Callable[[str], ReferenceRecordings],
    tmp_path: Path,
) -> None:
    found = judged(references(dtype), dtype, fault, tmp_path)
    assert found.first is not None
    assert (found.first.name.kind, found.first.name.name) == (kind, name)
    disagree = {each.name.name for each in found.faults if each.fault.kind == "replicas"}
    assert (name in disagree) == (fault == "all_reduce")


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
@pytest.mark.parametrize(
    ("fault", "module", "parts", "suggests", "line"),
    [
        (
            "scale",
            "blocks.1.fc2",
            {"forward pass", "backward pass"},
            "wrong scale",
            "def forward",
        ),
        (
            "shard",
            "blocks.1.attention",
            {"what it hands to blocks.1.attention.proj", "backward pass"},
            "unknown",
            "def forward",
        ),
    ],
)
def test_the_module_that_is_wrong_by_itself_is_named(
    fault: str,
    module: str,
    parts: set[str],
    suggests: str,
    line: str,
    references: Callable[[str], ReferenceRecordings],
    tmp_path: Path,
) -> None:
    asked = trial("float32", fault)
    reference = references("float32")
    candidate = run_candidate(asked, reference.recording, tmp_path)
    found = localize(asked, reference, candidate, tmp_path)
    [suspect] = found.suspects
    assert (suspect.module, suspect.evidence.suggests) == (module, suggests)
    assert parts <= set(suspect.part.split(", ")) and found.unjudged == ()
    assert suspect.call is not None
    file, number = suspect.call.defined.rsplit(":", 1)
    assert Path(file).name == "transformer.py"
    assert line in (HERE / "transformer.py").read_text().splitlines()[int(number) - 1]


@pytest.mark.slow
@pytest.mark.gloo
def test_replicas_of_a_gradient_that_disagree_are_a_finding_of_their_own(
    references: Callable[[str], ReferenceRecordings], tmp_path: Path
) -> None:
    found = judged(references("float32"), "float32", "norm_gradient", tmp_path)
    of = {(each.name.kind, each.name.name, each.fault.kind) for each in found.faults}
    assert ("param_grads", "blocks.1.norm1.weight", "replicas") in of
    assert {name for kind, name, _ in of if kind == "param_grads"} == {"blocks.1.norm1.weight"}
