"""megatron-core on several ranks against one: silent as released, and named with a bug in it.

A sample runs here; `python -m tests.equivalence.megatron_table` runs all, and prints the page.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.equivalence.megatron_generated import CASES as GENERATED
from tests.equivalence.megatron_references import PAIRS
from tests.equivalence.megatron_sweep import HEAD as SWEEP_HEAD
from tests.equivalence.megatron_sweep import JOBS
from tests.equivalence.megatron_table import BFLOAT16, CASES, HEAD, LEFT_OUT, UNSEEN, Case, left_out
from tests.families import family
from tests.jobs import done
from tests.megatron.bugs.bug import all_bugs
from tspec.cli.app import app

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PATIENCE = 600
"""Seconds; the machine may be busy."""


def test_each_fault_is_compared_with_one_device_or_left_out_with_a_reason() -> None:
    compared = [case.fault for case in CASES]
    assert len(set(compared)) == len(compared)
    assert sorted([*compared, *LEFT_OUT]) == [bug.name for bug in all_bugs()]


def test_each_fault_that_bfloat16_hides_has_a_reason() -> None:
    assert sorted(UNSEEN) == [case.fault for case in CASES if BFLOAT16 in case.hidden]


def rows(page: str, head: str) -> list[list[str]]:
    """The cells of the table that follows a page's head."""
    said = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert said.startswith(head)
    lines = said.removeprefix(head).lstrip("\n").splitlines()
    return [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]


def test_the_page_of_clean_jobs_has_each_of_them() -> None:
    assert [row[0] for row in rows("megatron_sweep.md", SWEEP_HEAD)] == [f"`{job}`" for job in JOBS]


def test_the_page_of_faults_has_each_case_with_what_is_to_be_found() -> None:
    found = rows("megatron_equivalence.md", HEAD)
    cases = [(case, precision) for case in CASES for precision in case.precisions]
    expected = [(case.fault, f"`{case.text(precision)}`") for case, precision in cases]
    assert [(row[0], row[2]) for row in found] == expected
    for (case, precision), (fault, _, _, first, _, sketched) in zip(cases, found, strict=True):
        if precision not in case.hidden:
            first_wrong = f"`{case.wrong_first(precision)}`"
            assert (first, sketched) == (first_wrong, first_wrong), fault
    page = (ROOT / "docs" / "megatron_equivalence.md").read_text(encoding="utf-8")
    assert page.endswith(f"{left_out()}\n")


@pytest.mark.gloo
@pytest.mark.parametrize(
    "case", family(CASES, ("output_not_summed",), name=lambda case: str(case.fault))
)
def test_a_fault_is_found_where_it_is_and_the_job_without_it_is_silent(case: Case) -> None:
    """In each of its precisions, from full tensors and from sketches."""
    ended = done("-m", "tests.equivalence.megatron_table", case.fault)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    rows = [line for line in ended.stdout.splitlines() if line.startswith(f"| {case.fault} |")]
    assert len(rows) == len(case.precisions)


@pytest.mark.parametrize("spec", sorted(HERE.glob("*.tspec")), ids=lambda path: path.stem)
def test_files_of_equivalences_have_no_findings(spec: Path) -> None:
    found = CliRunner().invoke(app, ["lint", str(spec)])
    assert (found.exit_code, found.output) == (0, "no findings\n")


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
@pytest.mark.parametrize(
    "name", ["sequence_parallel", "pipeline", "data_parallel", "all_axes", "experts"]
)
def test_equivalences_of_a_file_are_silent(name: str) -> None:
    spec = HERE / f"megatron{'_experts' * (name == 'experts')}.tspec"
    model = ",experts=4,etp={etp}" * (name == "experts")
    job = f"tp={{tp}},dp={{dp}},pp={{pp}},sp={{sp}},passes=2,steps=1{model}"
    command = (str(ROOT / "tests/megatron/train.py"), job)
    found = CliRunner().invoke(app, ["run", str(spec), "--equivalence", name, "--", *command])
    assert (found.exit_code, "none differs" in found.stdout) == (0, True), found.output


SAMPLE = (
    "tp=2,pp=2,virtual=2,sp,recompute,kv=2,swiglu,rms,rope,nobias,padded,vocabulary=150,bf16",
    "dp=2,ep=2,zero,experts=4,kv=2,swiglu,rms,rope,untied,noaux",
)
"""Interleaved stages with tied embeddings, a padded vocabulary and recomputation; experts over ranks."""


@pytest.mark.gloo
@pytest.mark.parametrize("job", family(("tp=2", "tp=2,sp,qknorm,kv=2"), {"tp=2,sp,qknorm,kv=2"}))
def test_a_wrong_scale_of_scores_is_in_core_attention_alone(job: str) -> None:
    """Queries and keys pass modules that may give them back as they are: these are not at fault."""
    ended = done("-m", "tests.equivalence.attention_scale", job)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    *modules, first = ended.stdout.splitlines()
    of_layers = (f"decoder.layers.{layer}.self_attention.core_attention" for layer in range(4))
    assert {each.partition(": ")[0] for each in modules} == set(of_layers)
    assert first == "first: outputs decoder.layers.0.self_attention.core_attention"


@pytest.mark.slow
@pytest.mark.gloo
def test_clean_jobs_are_one_device_by_the_layouts_that_ship() -> None:
    ended = done("-m", "tests.equivalence.megatron_sweep", "--verbose", *SAMPLE)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    rows = [line.split(" | ") for line in ended.stdout.splitlines() if line.startswith("| `")]
    assert [row[0].strip("| `") for row in rows] == list(SAMPLE)
    assert all(int(row[3]) > 380 for row in rows), ended.stdout  # tensors that were compared


@pytest.mark.gloo
@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("case", [case.name for case in GENERATED])
def test_both_sides_begin_with_the_weights_that_they_are_given(case: str) -> None:
    """Every rank draws its own, and Megatron's optimizers have copied these before."""
    ended = done("-m", "tests.equivalence.megatron_generated", case)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    [line] = ended.stdout.splitlines()
    name, number, _ = line.split(" : ")
    assert (name, int(number) > 1000) == (case, True)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
def test_a_reference_may_be_a_pipeline_also_with_interleaved_stages() -> None:
    ended = done("-m", "tests.equivalence.megatron_references")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    rows = [line.split(" : ") for line in ended.stdout.splitlines()]
    assert [(row[0], row[1]) for row in rows] == list(PAIRS)
    assert all(int(row[2]) > 440 for row in rows), ended.stdout


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
def test_the_demo_shows_the_module_that_has_the_bug() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "docs/demo/megatron.py")],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    said = " ".join(done.stdout.split())
    assert "VocabParallelEmbedding, forward at tests/megatron/bugs/" in said
    page = (ROOT / "runs/demo-megatron/bug.html").read_text(encoding="utf-8")
    assert page.count("<h2>") == 4 and "embedding.word_embeddings: forward pass" in page
