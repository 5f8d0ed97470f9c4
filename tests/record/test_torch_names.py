"""Specs may name any function of torch, methods of tensors, and whole families of functions."""

import json
from pathlib import Path

import pytest

from tests.record.processes import SCRIPTS, python, recorded, tspec

SPEC, JOB = SCRIPTS / "torch_names.tspec", SCRIPTS / "torch_names.py"
WARNINGS = ("--fail-on", "warning")


@pytest.mark.slow
def test_rules_look_at_what_they_name(tmp_path: Path) -> None:
    plain = python(JOB)
    report = tmp_path / "report.json"
    done = tspec("run", SPEC, "--report", report, *WARNINGS, "--", JOB)
    assert done.returncode == 1, done.stdout + done.stderr
    assert plain.stdout.splitlines()[-1] in done.stdout
    found = {one["rule"].rsplit(".", 1)[1]: one["step"] for one in _all(report)}
    assert found == {"solved_at_least_once": 2, "fillings_are_finite": 3}


@pytest.mark.slow
def test_a_recording_holds_what_specs_name(tmp_path: Path) -> None:
    done = recorded(tmp_path / "run", JOB, options=("--use", SPEC))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == python(JOB).stdout
    shown = tspec("trace", "show", tmp_path / "run").stdout
    calls = " ".join(shown.split())
    assert "fill 4" in calls
    assert "torch.linalg.solve 2" in calls
    assert "torch.einsum 3" in calls


def _all(report: Path) -> list[dict]:
    waiting, found = json.loads(report.read_text()), []
    while waiting:
        one = waiting.pop(0)
        found.append(one)
        waiting += one["consequences"]
    return found
