"""A loss that is not finite is found in jobs that free it before a backward pass of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.jobs import done
from tests.megatron.jobs import TRAIN

LOST = str(Path(__file__).with_name("lost.py"))
RULE = "loss_without_backward_is_finite"


def found_in(script: str, layout: str, report: Path) -> list[tuple[int, list[int]]]:
    """Step and ranks of the findings of the rule in a job of three steps."""
    run = ("-m", "tspec", "run", "specs/health", "--report", str(report), "--")
    ended = done(*run, script, f"{layout},steps=3")
    said = ended.stdout + ended.stderr
    assert ended.returncode in (0, 1) and "internal error" not in said and "decided" in said, said
    found = json.loads(report.read_text())
    # Gradients and states are not finite either: findings of one step are folded.
    found += [one for each in found for one in each.get("consequences", ())]
    return [(one["step"], one["ranks"]) for one in found if one["rule"].endswith(RULE)]


@pytest.mark.gloo
@pytest.mark.parametrize(
    ("layout", "rank"), [("bf16", 0), pytest.param("pp=2", 1, marks=pytest.mark.slow)]
)
def test_a_loss_that_is_not_finite_is_found(layout: str, rank: int, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    assert found_in(LOST, layout, report) == [(3, [rank])]
    assert found_in(TRAIN, layout, report) == []
