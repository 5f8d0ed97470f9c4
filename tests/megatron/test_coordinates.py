"""Findings of a Megatron job name the pipeline stage and the other coordinates of ranks, in a run and over its recording alike."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.jobs import done
from tests.megatron.jobs import TRAIN
from tspec.resolve import load
from tspec.targets.megatron.shards import GROUPS

ROOT = Path(__file__).parents[2]

JOB = ("tp=2,pp=2,sp,steps=3", "--bug", "stage_changes_its_input")
PLACE = "  step 1, ranks 2, 3 (pp 1, tp 0-1): m #0\n"


def test_axes_that_findings_name_are_those_of_the_vocabulary() -> None:
    program = load([ROOT / "specs" / "megatron" / "megatron.tspec"]).program
    assert program is not None
    declared = {group.name: group.callables for group in program.vocabulary.groups}
    assert {group.name: group.callables for group in GROUPS}.items() <= declared.items()


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
def test_a_rank_is_shown_with_its_stage(tmp_path: Path) -> None:
    trace, report = str(tmp_path / "run"), tmp_path / "report.json"
    asked = ("specs/communication", "--report", str(report))
    live = done("-m", "tspec", "run", *asked, "--", TRAIN, *JOB)
    of_run = json.loads(report.read_text())
    done("-m", "tspec", "record", "--use", "std.megatron", "-o", trace, "--", TRAIN, *JOB)
    offline = done("-m", "tspec", "check", *asked, "--trace", trace)
    of_recording = json.loads(report.read_text())
    for said, found in ((live.stdout, of_run), (offline.stdout, of_recording)):
        assert PLACE in said, said
        assert found[0]["coordinates"] == {
            "2": {"pp": 1, "tp": 0},
            "3": {"pp": 1, "tp": 1},
        }
