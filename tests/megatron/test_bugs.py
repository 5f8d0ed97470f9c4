"""Faults in the real megatron-core: each is reported first by the rule, at the step and on the ranks that its module says.

A sample runs here; `python -m tests.megatron.bugs.table` runs all, and writes the page whose rows are compared.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.families import family
from tests.megatron.bugs.bug import Bug, all_bugs, found_of, load
from tspec.resolve import load as resolved

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "megatron_faults.md"
SAMPLE = {
    "final_norm_not_marked",
    "tied_gradients_not_summed",
    "left_out_update_decays",
    "stage_changes_its_input",
}


@pytest.mark.gloo
@pytest.mark.parametrize("name", family([bug.name for bug in all_bugs()], SAMPLE))
def test_a_fault_is_reported(name: str, tmp_path: Path) -> None:
    bug = load(name)
    found = found_of(bug, tmp_path / "report.json")
    assert bug.matches(found), found


OTHER_JOBS = {"capacities_agree"}
"""Rules that find their fault elsewhere. This one is of DeepSpeed, which is not installed; `test_experts.py` has it watch megatron-core's function."""


@pytest.mark.parametrize("pack", ["megatron", "moe"])
def test_every_rule_of_a_pack_reports_some_fault_first(pack: str) -> None:
    program = resolved([ROOT / "specs" / pack / f"{pack}.tspec"]).program
    assert program is not None
    rules = {rule.name.rpartition(".")[2] for rule in program.rules}
    found = {bug.found.rule for bug in all_bugs() if bug.found and bug.pack == pack}
    assert found == rules - OTHER_JOBS


@pytest.mark.parametrize("bug", all_bugs(), ids=lambda bug: bug.name)
def test_the_page_has_a_fault_as_it_is_to_be_found(bug: Bug) -> None:
    [row] = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| {bug.what} |")]
    _, _, source, job, finding, _ = (cell.strip() for cell in row.split("|"))
    assert (source, job) == (bug.source, f"`{bug.layout}`")
    if bug.found is None:
        assert finding == "none: leaves replicas in agreement, needs equivalence"
    else:
        ranks = ", ".join(map(str, bug.found.ranks))
        assert finding.startswith(f"`{bug.found.rule}`, step {bug.found.step}, rank")
        assert f" {ranks}" in finding and bug.found.subject in finding
