"""`tspec run --record`: one run, with its rules checked and itself recorded."""

from pathlib import Path

import pytest

from tests.record.processes import ROOT, python

JOBS = ROOT / "tests" / "record" / "jobs.py"


@pytest.mark.slow
@pytest.mark.gloo
def test_ranks_are_checked_and_recorded_and_the_recording_says_the_same(tmp_path: Path) -> None:
    options = ["specs/hygiene", "specs/replicas", "--record", tmp_path / "run"]
    done = python("-m", "tspec", "run", *options, "--", JOBS, "mlp", tmp_path / "out", "2")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing found" in done.stdout
    assert (tmp_path / "out.1").exists()
    shown = python("-m", "tspec", "trace", "show", tmp_path / "run").stdout
    assert [line.split()[-1] for line in shown.splitlines() if line.startswith("rank ")] == [
        "finished",
        "finished",
    ]
    checked = python("-m", "tspec", "check", "specs/replicas", "--trace", tmp_path / "run")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_folder_that_holds_a_recording_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rank-0.arrow").write_bytes(b"")
    done = python("-m", "tspec", "run", "std.hygiene", "--record", tmp_path, "--", JOBS, "mlp", "x")
    assert done.returncode == 2
    assert "holds a recording already" in done.stderr
