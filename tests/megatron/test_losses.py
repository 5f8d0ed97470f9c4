"""A loss that is not finite is found in jobs that free it before a backward pass of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.jobs import done
from tests.megatron.jobs import TRAIN

LOST = str(Path(__file__).with_name("lost.py"))
RULE = "loss_without_backward_is_finite"


def spoilt(report: Path) -> list[tuple[int, list[int]]]:
    """Step and ranks of the findings of the rule."""
    found = json.loads(report.read_text())
    # Gradients and states are not finite either: findings of one step are folded.
    found += [one for each in found for one in each.get("consequences", ())]
    return [(one["step"], one["ranks"]) for one in found if one["rule"].endswith(RULE)]


def found_in(script: str, layout: str, folder: Path) -> list[tuple[int, list[int]]]:
    """The findings of the rule in a job of three steps, the same in its recording."""
    folder.mkdir()
    trace, live, later = folder / "trace", folder / "live.json", folder / "later.json"
    run = ("-m", "tspec", "run", "specs/health", "--record", str(trace), "--report", str(live))
    check = ("-m", "tspec", "check", "specs/health", "--trace", str(trace), "--report", str(later))
    for command in ((*run, "--", script, f"{layout},steps=3"), check):
        ended = done(*command)
        said = ended.stdout + ended.stderr
        assert ended.returncode in (0, 1), said
        assert "internal error" not in said and "Traceback" not in said, said
    found = spoilt(live)
    assert spoilt(later) == found
    return found


@pytest.mark.slow
@pytest.mark.gloo
@pytest.mark.parametrize(
    ("layout", "rank"),
    [pytest.param("bf16", 0, marks=pytest.mark.exhaustive), ("pp=2", 1)],
)
def test_a_loss_that_is_not_finite_is_found(layout: str, rank: int, tmp_path: Path) -> None:
    assert found_in(LOST, layout, tmp_path / "lost") == [(3, [rank])]
    assert found_in(TRAIN, layout, tmp_path / "sound") == []
