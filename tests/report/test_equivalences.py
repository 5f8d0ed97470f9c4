"""The text of a comparison of two runs is as wide as the screen."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from tests.equivalence.test_blame import LINES, MODULES
from tests.equivalence.test_sides import TEXT, trial
from tspec.equivalence.blame import RunCalls
from tspec.equivalence.compare import Fault, TensorComparison
from tspec.equivalence.evidence import Evidence
from tspec.equivalence.gradient_norms import NormComparison
from tspec.equivalence.localize import Localization, suspects
from tspec.equivalence.losses import LossScale
from tspec.equivalence.merge import MergeFault
from tspec.equivalence.missing_passes import MissingPass, StagePass
from tspec.equivalence.outcome import Outcome
from tspec.equivalence.recording import TensorName
from tspec.equivalence.verdicts import Verdict
from tspec.report.equivalences.results import results
from tspec.report.equivalences.text import table, text
from tspec.report.equivalences.wording import apart
from tspec.resolve import load_text

LONG = "decoder.layers.0.self_attention.core_attention.scale_mask_softmax"


def verdict() -> Verdict:
    evidence = Evidence("missing reduction", "the sum of the replicas is the reference")
    wrong = tuple(
        TensorComparison(TensorName("outputs", name, 12, 3, 4), order, 1e6, 0.5, 1e-7, evidence)
        for order, name in enumerate((LONG, "norm"))
    )
    fault = Fault(wrong[0].name, 0, MergeFault("replicas", "they differ by 1e+00 of the tensor"))
    modules = {**MODULES, LONG: replace(MODULES["norm"], parent="Net")}
    calls = RunCalls(modules, tuple(modules), LINES)
    found = Outcome(wrong, (fault,), (TensorName("inputs", f"{LONG}[mask]", 1),), calls=calls)
    alone = Localization(tuple(suspects(found)), (f"{LONG}[mask]",), wrong)
    return Verdict(trial(), found, alone)


@pytest.mark.parametrize("width", [80, 100, 200])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    said = text(verdict(), width)
    assert max(map(len, said.splitlines())) <= width
    assert any(len(line) > 80 for line in said.splitlines()) == (width > 80)
    assert " ".join(said.split()) == " ".join(text(verdict(), 1000).split())


def test_tensors_without_a_place_have_one_line_for_all_layers() -> None:
    found = verdict()
    names = ("blocks.0.norm", "blocks.0", "blocks.1.norm", "blocks.1", "blocks.2.norm", "head")
    unplaced = tuple(TensorName("inputs", name, 1) for name in names)
    said = text(replace(found, outcome=replace(found.outcome, unplaced=unplaced)), 80)
    _, after = said.split("not compared, since the layout has no place for them:\n")
    assert after.startswith("  inputs blocks.0..2.norm\n  inputs blocks.{0, 1}\n  inputs head\n")


def test_the_last_column_of_a_table_of_configurations_is_folded() -> None:
    swept = TEXT.replace("  run 2 steps", "  sweep dtype in [float32, bfloat16]\n  run 2 steps")
    program = load_text(swept).program
    assert program is not None
    [declaration] = program.equivalences
    rows = [
        replace(verdict(), trial=replace(trial(), swept={"dtype": each}))
        for each in ("float32", "bfloat16")
    ]
    said = table(rows, declaration, 80).splitlines()
    assert "2 configurations compared, 2 differ" in said[0]
    head = next(line for line in said if line.startswith("dtype"))
    start = head.index("first wrong")
    assert start < 80 and max(map(len, said)) <= 80
    assert sum(line.startswith("  ") for line in said) >= 2  # what was folded


@pytest.mark.parametrize(
    ("times", "said"),
    [
        (4.0, "the reference divides losses by 4 micro-batches, the candidate gradients"),
        (1 / 4, "the candidate divides losses by 4 micro-batches, the reference gradients"),
    ],
)
def test_who_divides_losses_is_told(times: float, said: str) -> None:
    found = verdict().outcome
    assert found is not None
    divided = replace(found, scale=LossScale(microbatches=times))
    lines = text(replace(verdict(), outcome=divided), 1000).splitlines()
    assert lines[1] == f"{said}: compared as such"
    assert said not in text(verdict(), 1000)


def test_a_norm_that_is_not_that_of_the_gradients_is_a_finding_of_its_own() -> None:
    name = TensorName("gradient_norms", "norm", 1)
    norm = NormComparison(name, 3, (0, 1), 0.75, 0.5, 1.0, 2e-6)
    found = verdict().outcome
    assert found is not None
    both = replace(found, faults=(*found.faults, norm.fault), norms=(norm,))
    lines = text(replace(verdict(), outcome=both), 1000).splitlines()
    head = lines.index("reported norms that are not those of the job's own gradients:")
    says = "ranks 0, 1 report 0.75, and the gradients of all ranks have the norm 0.5: off by 0.5, tolerated 2e-06"
    assert lines[head + 1] == f"  gradient_norms norm, step 1: {says}"
    assert "1 tensor whose shards do not fit:" in lines
    program = load_text(TEXT).program
    assert program is not None
    [declaration] = program.equivalences
    made = results([replace(verdict(), outcome=both)], declaration).results
    [result] = (each for each in made if each.properties["what"] == "norm")
    assert result.message == f"{name}: {says}"


def test_pieces_that_do_not_fit_have_the_line_of_what_made_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first has whose code it is, a layout that does not fit its own place."""
    monkeypatch.chdir(tmp_path)
    for name in ("model.py", "train.py"):
        Path(name).touch()
    given = verdict()
    assert given.outcome is not None
    faults = tuple(
        Fault(TensorName(kind, name, 1), order, MergeFault(fault, "they differ"))
        for order, (kind, name, fault) in enumerate(
            [
                ("outputs", "norm", "replicas"),
                ("output_grads", "Net", "replicas"),
                ("params", "norm.weight", "layout"),
            ]
        )
    )
    calls = RunCalls(MODULES, tuple(MODULES), LINES)
    right = tuple(
        TensorComparison(TensorName(kind, name, 1), 9, 0.0, 1.0, 1e-7)
        for kind, name in (("inputs", "Net"), ("outputs", "norm"))
    )
    outcome = Outcome(right, faults, (), calls=calls)
    program = load_text(TEXT).program
    assert program is not None
    found = results([replace(given, outcome=outcome, localized=None)], program.equivalences[0])
    lines = [each.location and (each.location.file, each.location.line) for each in found.results]
    assert lines == [("model.py", 20), ("train.py", 10), None]
    made = [each.properties.get("made_by", {}).get("subject") for each in found.results]
    assert made == ["norm", None, None]
    text = TEXT.splitlines()
    assert [text[each.region.line - 1].split("{")[0].strip() for each in found.results] == [
        "equivalence e",
        "equivalence e",
        'param "*": [hidden / tp] when sequence',
    ]


def test_gradients_of_a_pass_that_was_not_made_have_one_line() -> None:
    found = verdict().outcome
    assert found is not None
    names = [TensorName("output_grads", name, 3, 2) for name in (LONG, "norm")]
    absent = MergeFault("missing", "rank 1 recorded no such tensor")
    lost = MissingPass(StagePass(3, 2, 0, 1), 4, (1,), frozenset(names), frozenset())
    faults = tuple(Fault(name, 0, absent) for name in names)
    found = Outcome((), faults, (), calls=found.calls, missing_passes=(lost,))
    said = text(replace(verdict(), outcome=found, localized=None), 1000).splitlines()
    missing = "no backward pass of micro-batch 2 on rank 1 of stage 0, chunk 1"
    assert f"step 3: {missing}: 2 gradients not recorded" in said
    assert f"  made by the script's own code: {missing}" in said
    assert not [line for line in said if "do not fit" in line]


@pytest.mark.parametrize(
    ("error", "tolerated", "said"),
    [
        (0.5, 3.6e-7, ("0.5", "3.6e-07")),
        (3.7312e-7, 3.7205e-7, ("3.73e-07", "3.72e-07")),
        (1.0, 1.0, ("1", "1")),
        (inf, 1e-6, ("inf", "1e-06")),
    ],
)
def test_an_error_is_told_apart_from_its_tolerance(
    error: float, tolerated: float, said: tuple[str, str]
) -> None:
    assert apart(error, tolerated) == said
