"""Drafts from real runs of the digits CNN: what they say, that they repeat, and what they stay silent on."""

from __future__ import annotations

import difflib
import re
from pathlib import Path

import pytest

from tests.families import EXHAUSTIVE
from tests.jobs import tspec
from tspec.check.columnar import check
from tspec.infer import STANDARD, Inference, infer
from tspec.infer.emit import emit
from tspec.resolve import load_text
from tspec.resolve.program.rules import Rule

pytestmark = pytest.mark.xdist_group("drafts")

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "docs/demo/digits.py"
SHORT = ("--samples", "320")
BOUNDED = r'by: "(learning|ranges)@'
"""What drafts say that bound numbers, widely."""


def record(folder: Path, *options: str) -> Path:
    done = tspec("record", "-o", str(folder), "--", str(SCRIPT), *options)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("runs")
    return (
        record(folder / "a", "--seed", "0", *SHORT),
        record(folder / "b", "--seed", "1", *SHORT),
    )


@pytest.fixture(scope="module")
def inference(runs: tuple[Path, Path]) -> Inference:
    return infer(runs)


@pytest.fixture(scope="module")
def text(inference: Inference) -> str:
    return emit(inference.drafts, "drafts", STANDARD, ("runs/a", "runs/b"))


@pytest.fixture(scope="module")
def rules(text: str) -> tuple[Rule, ...]:
    loaded = load_text(text, name="drafts.tspec")
    assert loaded.program is not None, loaded.diagnostics
    return loaded.program.rules


def violated(rules: tuple[Rule, ...], run: Path) -> set[str]:
    verdicts = check(rules, run)
    assert any(each.verdict == "holds" for each in verdicts.decided)
    return {each.instance.rule for each in verdicts.decided if each.verdict == "violated"}


@pytest.mark.slow
def test_every_candidate_is_well_typed(inference: Inference) -> None:
    assert inference.untyped == ()


def test_the_drafts_say_what_a_training_loop_is(rules: tuple[Rule, ...]) -> None:
    names = {rule.name for rule in rules}
    assert {
        "one_optimizer_zero_grad_each_step",
        "one_scheduler_step_each_step",
        "parameter_in_optimizers_parameters_before_optimizer_step",
        "matmul_output_dtype_is_autocast_dtype",
        "not_dropout_training_when_phase_is_eval",
        "backward_before_optimizer_step_each_step",
    } <= names
    assert all(rule.draft for rule in rules)
    assert 20 <= len(rules) <= 80


def test_no_draft_holds_a_literal_of_the_recording(text: str) -> None:
    blocks = [block for block in text.split("\n\n") if not re.search(BOUNDED, block)]
    said = "\n".join(
        line
        for line in "\n\n".join(blocks).splitlines()
        if not re.match(r"\s+(by|from|held|broken):|edition |///", line)
    )
    said = re.sub(r'"[^"]+ <- [^"]+"', "", said)  # operations with their dimensions
    assert set(re.findall(r"(?<![\w.])\d+(?:\.\d+)?", said)) <= {
        "0",
        "1",
        "3",
        "4",
        "10",
        "20",
        "50",
    }
    assert "/" not in said
    assert "0x" not in said


def test_each_draft_says_what_goes_wrong_where_it_breaks(text: str) -> None:
    blocks = text.split("\n\n")[3:]
    assert all(re.match(r"(/// .+\n)+draft invariant ", block) for block in blocks)


def test_no_draft_says_what_merely_happens_or_cannot_fail(rules: tuple[Rule, ...]) -> None:
    names = " ".join(rule.name for rule in rules)
    for words in (
        "shape", "device", "finite_cross_entropy_target", "contains_dropout", "contains_matmul",
        "one_cross_entropy", "one_backward", "each_epoch", "not_present_embedding",
        "dropout_before", "generator",
    ):  # fmt: skip
        assert words not in names


@pytest.mark.slow
def test_inferring_again_gives_the_same_bytes(runs: tuple[Path, Path], text: str) -> None:
    again = infer(runs)
    assert emit(again.drafts, "drafts", STANDARD, ("runs/a", "runs/b")) == text


@pytest.mark.slow
@pytest.mark.exhaustive
def test_one_more_run_changes_counts_and_hardly_a_rule(
    runs: tuple[Path, Path], text: str, tmp_path: Path
) -> None:
    third = record(tmp_path / "c", "--seed", "2", *SHORT)
    more = emit(infer((*runs, third)).drafts, "drafts", STANDARD, ("runs/a", "runs/b"))
    old, new = (
        [line for line in each.splitlines() if line.startswith("draft invariant")]
        for each in (text, more)
    )
    changed = [line for line in difflib.unified_diff(old, new, n=0) if line[1:6] == "draft"]
    assert len(changed) <= 3, changed


@pytest.mark.slow
def test_a_clean_run_with_another_seed_is_left_in_peace(
    rules: tuple[Rule, ...], tmp_path: Path
) -> None:
    assert violated(rules, record(tmp_path / "c", "--seed", "3", *SHORT)) == set()


@pytest.mark.slow
def test_a_clean_run_twice_as_long_is_left_in_peace(
    rules: tuple[Rule, ...], tmp_path: Path
) -> None:
    run = record(tmp_path / "c", "--seed", "4", "--epochs", "4", *SHORT)
    assert violated(rules, run) == set()


@pytest.mark.parametrize(
    ("bug", "rule"),
    [
        ("no-zero-grad", "one_optimizer_zero_grad_each_step"),
        ("stale-optimizer", "parameter_in_optimizers_parameters_before_optimizer_step"),
        pytest.param("eval-dropout", "not_dropout_training_when_phase_is_eval", marks=EXHAUSTIVE),
        pytest.param(
            *("double-schedule", "one_scheduler_step_each_step"),
            marks=EXHAUSTIVE,
        ),
        pytest.param(*("no-autocast", "matmul_output_dtype_is_autocast_dtype"), marks=EXHAUSTIVE),
    ],
)
def test_a_bug_breaks_the_draft_that_speaks_of_it(
    bug: str, rule: str, rules: tuple[Rule, ...], tmp_path: Path
) -> None:
    run = record(tmp_path / "bug", "--seed", "5", "--epochs", "1", "--bug", bug, *SHORT)
    assert f"drafts.{rule}" in violated(rules, run)


def test_a_dropped_claim_knows_why(inference: Inference) -> None:
    reasons = {dropped.claim.expect: dropped.reason for dropped in inference.dropped}
    assert reasons["not changed(p.data)"] == "never seen to hold"
