"""Packs say nothing of sound jobs, and decide something of each: the layouts in `sweep.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import sweeps
from tests.families import family
from tests.megatron import decided
from tests.megatron.sweep import CLEAN, OPENING, PACKS, layout_of, swept
from tests.sweeps import HEADER

PAGE = Path(__file__).resolve().parents[2] / "docs" / "megatron_clean.md"

SAMPLE = {"tp=2,sp,experts=4,etp=2"}
"""Experts under tensor and sequence parallelism; `make test-all` has the other layouts."""


def test_the_page_has_a_silent_row_for_each_layout() -> None:
    page = PAGE.read_text()
    assert page.startswith(OPENING + HEADER)
    rows = page.removeprefix(OPENING + HEADER).split("\n")[1:-1]
    jobs = [f"| `{layout_of(text)}` " for text in CLEAN]
    assert [row[: len(job)] for row, job in zip(rows, jobs, strict=True)] == jobs
    assert all(row.endswith("| none |") for row in rows)


@pytest.mark.gloo
@pytest.mark.parametrize("layout", family(CLEAN, SAMPLE))
def test_packs_are_silent(layout: str, tmp_path: Path) -> None:
    found = swept(layout, tmp_path)
    assert found.findings == ()
    assert found.decided > 1000


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


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
def test_packs_are_silent_where_a_job_evaluates(tmp_path: Path) -> None:
    """The passes of an evaluation belong to the step before it."""
    script = (str(Path(__file__).with_name("evaluated.py")), "tp=2,sp,dropout,steps=4")
    found = sweeps.swept("evaluated", 2, PACKS, script, tmp_path)
    assert found.findings == ()
    assert found.decided > 1000
