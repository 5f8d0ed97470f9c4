"""Modes of torch's own parallelism: packs are silent on clean jobs, and report what is put into them.

A sample runs here; `python -m tests.native.sweep` and `python -m tests.native.faults` run all and write the pages
whose rows are compared.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import sweeps
from tests.families import family
from tests.first_found import Found, first_found, matches
from tests.native import decided
from tests.native.faults import FAULTS, Fault, found_of
from tests.native.sweep import CLEAN, command, swept

DOCS = Path(__file__).parents[2] / "docs"
SILENT = {"pipelines tied", "replicated one_updates_parts"}
FOUND = {"sharded fully one_left_out", "sharded fully before_sharding"}
"""Other jobs of these kinds are in `tests/clean` and `tests/zoo`."""


@pytest.mark.gloo
@pytest.mark.parametrize("job", family(CLEAN, SILENT))
def test_packs_are_silent(job: str, tmp_path: Path) -> None:
    found = swept(job, tmp_path)
    assert found.findings == ()
    assert found.decided > 300


def test_jobs_and_rules_of_the_test_below_exist() -> None:
    assert {*decided.DECIDING} <= {*CLEAN}
    assert decided.UNDECIDED.keys() <= sweeps.rules_of(*decided.PACKS)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
def test_every_rule_is_decided_in_a_sound_job() -> None:
    """Silence of a rule that is idle everywhere would say nothing."""
    rules = sweeps.rules_of(*decided.PACKS)
    assert sweeps.undecided(decided.DECIDING, swept, rules) == decided.UNDECIDED.keys()


@pytest.mark.gloo
@pytest.mark.parametrize("fault", family(FAULTS, FOUND, name=lambda fault: fault.name))
def test_a_fault_is_reported(fault: Fault, tmp_path: Path) -> None:
    found = found_of(fault, tmp_path / "report.json")
    assert matches(found, fault.expected), found


@pytest.mark.parametrize("job", CLEAN)
def test_the_page_has_a_clean_job(job: str) -> None:
    page = (DOCS / "native_sweep.md").read_text().splitlines()
    [row] = [line for line in page if line.startswith(f"| `{job}` |")]
    assert row.endswith("| none |")


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_page_has_a_fault_as_it_is_to_be_found(fault: Fault) -> None:
    page = (DOCS / "native_faults.md").read_text().splitlines()
    [row] = [line for line in page if line.startswith(fault.begins)]
    assert row.startswith(fault.row(fault.expected).removesuffix("` |"))


@pytest.mark.slow
@pytest.mark.gloo
@pytest.mark.parametrize("bug", ["", "not_scaled"])
def test_advice_asks_who_divides_by_the_number_of_microbatches(bug: str, tmp_path: Path) -> None:
    script = (*command("pipelines 1f1b"), *(("--bug", bug) if bug else ()))
    found = first_found(["specs/advice"], script, tmp_path / "report.json")
    expected = Found("accumulated_losses_are_averaged", 3, (1,), "") if bug else None
    assert matches(found, expected), found


WITHIN_A_PASS = """
edition 2026

use std.torch

invariant is_read_within_a_pass {
  for m in models
  before dropout
  expect count(m.parameters.group) >= 0
}
"""


@pytest.mark.slow
@pytest.mark.gloo
def test_a_rule_that_reads_parameters_within_a_pass_changes_no_other_verdict(
    tmp_path: Path,
) -> None:
    """There `FullyShardedDataParallel` has views in the places of original parameters."""
    rules = tmp_path / "within.tspec"
    rules.write_text(WITHIN_A_PASS)
    script = command("sharded flat_clip")
    found = first_found(["specs/hygiene", str(rules)], script, tmp_path / "report.json")
    assert matches(found, None), found


@pytest.mark.slow
def test_a_job_that_ends_in_silence_is_no_clean_one(tmp_path: Path) -> None:
    script = tmp_path / "gone.py"
    script.write_text("import os\nos._exit(3)\n")
    found = sweeps.swept("gone", 1, ("checkpoints",), (str(script),), tmp_path)
    assert [each.partition(":")[0] for each in found.findings] == ["exit status 3"]
