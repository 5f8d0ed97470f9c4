"""A recorded training process is killed at several moments; what it did until then is read and checked."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.families import EXHAUSTIVE
from tests.record.processes import PATIENCE, ROOT, SCRIPTS, environment, python
from tspec.trace.model import Begin, Boundary, Finish, Sample
from tspec.trace.read import open_tables, read_trace


def killed(trace: Path, after: str, delay: float = 0.0, halfway: int = 0) -> str:
    """Record until the script has printed a line, wait, kill. Returns the last line it printed."""
    script = str(SCRIPTS / "long.py")
    command = [sys.executable, "-m", "tspec", "record", "-o", str(trace), "--", script]
    with subprocess.Popen(
        [*command, str(halfway)], cwd=ROOT, env=environment(), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if line.strip() == after:
                    break
            else:
                pytest.fail(f"the script ended before it said {after!r}")
            time.sleep(delay)
        finally:
            os.kill(process.pid, signal.SIGKILL)
        rest = process.stdout.read()
        assert process.wait(PATIENCE) == -signal.SIGKILL
    lines = [line for line in rest.split("\n")[:-1] if line]
    return lines[-1] if lines else after


@pytest.mark.parametrize(
    ("after", "delay"),
    [
        pytest.param(1, 0.0, marks=EXHAUSTIVE),
        pytest.param(2, 0.0, marks=EXHAUSTIVE),
        pytest.param(7, 0.013, marks=EXHAUSTIVE),
        (40, 0.3),
    ],
)
def test_the_trace_reads_up_to_the_step_before_the_kill(
    tmp_path: Path, after: int, delay: float
) -> None:
    last = int(killed(tmp_path / "trace", str(after), delay))
    [table] = open_tables(tmp_path / "trace").streams
    assert not table.closed
    [stream] = read_trace(tmp_path / "trace").streams
    opened = [r.index for r in stream.records if isinstance(r, Boundary) and r.span == "step"]
    assert opened == list(range(1, len(opened) + 1))
    # What a step did is on disk when the next one opens, so only the step under way is lost.
    assert last <= len(opened) <= last + 1
    updated = [
        r.context.step
        for r in stream.records
        if isinstance(r, Begin) and r.event == "optimizer.step"
    ]
    assert updated[: last - 1] == list(range(1, last))
    assert not any(isinstance(r, Finish) for r in stream.records)
    seqs = [record.seq for record in stream.records]
    assert seqs == sorted(seqs)
    weights = {r.subject for r in stream.records if isinstance(r, Sample) and r.kind == "parameter"}
    assert {"0.weight", "0.bias", "3.weight", "3.bias"} <= weights


@pytest.mark.slow
@pytest.mark.exhaustive
def test_what_was_cut_off_is_said_and_the_rest_is_checked(tmp_path: Path) -> None:
    killed(tmp_path / "trace", "halfway", halfway=9)
    shown = python("-m", "tspec", "trace", "show", tmp_path / "trace")
    assert shown.returncode == 0, shown.stderr
    assert re.search(r"rank 0 .* 0-9 .* cut off$", shown.stdout, re.MULTILINE), shown.stdout
    checked = python("-m", "tspec", "check", "specs/essentials", "--trace", tmp_path / "trace")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    decided = re.search(r"([\d,]+) decided", checked.stdout)
    assert decided is not None, checked.stdout
    assert int(decided[1].replace(",", "")) > 50
    assert "Traceback" not in checked.stderr + shown.stderr


@pytest.mark.slow
def test_a_torn_tail_is_counted(tmp_path: Path) -> None:
    """As where the process is killed in the middle of a write."""
    killed(tmp_path / "trace", "halfway", halfway=5)
    path = tmp_path / "trace" / "rank-0.arrow"
    whole = path.stat().st_size
    before = len(read_trace(tmp_path / "trace").streams[0].records)
    path.write_bytes(path.read_bytes()[: whole - 100])
    [stream] = read_trace(tmp_path / "trace").streams
    assert stream.torn > 0
    assert 0 < len(stream.records) < before
    shown = python("-m", "tspec", "trace", "show", tmp_path / "trace")
    assert shown.returncode == 0, shown.stderr
    assert f"cut off, {stream.torn:,} bytes torn" in shown.stdout, shown.stdout
