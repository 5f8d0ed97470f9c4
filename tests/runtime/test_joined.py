"""Two ranks with 5 and 3 batches that join: nothing is said, and both go on with the same step."""

from pathlib import Path

import pytest

from tests.record.processes import ROOT, python
from tspec.trace.model import Boundary, Finish
from tspec.trace.read import read_trace

JOB = ROOT / "tests" / "clean" / "joined.py"


@pytest.mark.gloo
@pytest.mark.parametrize("kind", ["list", "loader"])
def test_ranks_that_joined_number_steps_alike(kind: str, tmp_path: Path) -> None:
    recording = tmp_path / "run"
    options = ("--record", recording, "--", JOB, "--kind", kind, "--epochs", "2")
    done = python("-m", "tspec", "run", "specs/essentials", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "internal error" not in done.stderr
    steps = {
        stream.rank: [r.index for r in stream.records if _is_step(r)]
        for stream in read_trace(recording).streams
    }
    assert steps == {0: [1, 2, 3, 4, 5, 0, 6, 7, 8, 9, 10, 0], 1: [1, 2, 3, 0, 6, 7, 8, 0]}
    for stream in read_trace(recording).streams:
        assert isinstance(stream.records[-1], Finish)
        assert stream.records[-1].context.step == 10
    checked = python("-m", "tspec", "check", "specs/essentials", "--trace", recording)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def _is_step(record: object) -> bool:
    return isinstance(record, Boundary) and record.span == "step"
