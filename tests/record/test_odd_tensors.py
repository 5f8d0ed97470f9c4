"""A tensor that cannot be read costs only itself, in a recording and under rules."""

from pathlib import Path

from tests.record.processes import SCRIPTS, recorded, tspec

JOB = SCRIPTS / "odd_tensors.py"


def test_all_else_is_recorded(tmp_path: Path) -> None:
    done = recorded(tmp_path / "run", JOB)
    assert (done.returncode, done.stdout) == (0, "trained\n"), done.stderr
    assert "the recording of rank" not in done.stderr
    assert "internal error" not in done.stderr
    assert done.stderr.count("cannot be read") == 1  # the raw bits: said once
    shown = tspec("trace", "show", tmp_path / "run").stdout
    assert "finished" in shown
    assert "buffer 8" in shown


def test_rules_are_checked_beside_it(tmp_path: Path) -> None:
    done = tspec("run", "specs/essentials", "--fail-on", "warning", "--", JOB)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "internal error" not in done.stderr
