"""A process that writes a trace is killed at several moments; what it had flushed is read."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tspec.trace import write
from tspec.trace.model import Boundary, Context, Ending, Sample
from tspec.trace.read import open_tables, read_trace
from tspec.trace.write import TraceWriter

WRITING = """
import sys
from tspec.trace.model import Boundary, Context, Sample, Tensor
from tspec.trace.write import TraceWriter
writer = TraceWriter(sys.argv[1], 0)
step = 0
while True:
    step += 1
    context = Context(step)
    writer.add(Boundary(step * 100, context, "step", step))
    for number in range(50):
        data = Tensor(digest=step * 1000 + number, norm=step / 7, shape=(number, 3))
        writer.add(Sample(step * 100 + number, context, "parameter", f"w{number}", {"data": data}))
    writer.flush()
    if step % 20 == 0:
        print(step, flush=True)
"""


@pytest.mark.parametrize("delay", [0.0, 0.003, 0.011, 0.05, 0.21])
def test_what_was_flushed_survives_a_kill(tmp_path: Path, delay: float) -> None:
    command = [sys.executable, "-c", WRITING, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        flushed = int(process.stdout.readline())
        time.sleep(delay)
        os.kill(process.pid, signal.SIGKILL)
    [table] = open_tables(tmp_path).streams
    [stream] = read_trace(tmp_path).streams
    assert not table.closed
    steps = [record.index for record in stream.records if isinstance(record, Boundary)]
    assert steps == list(range(1, len(steps) + 1))
    assert len(steps) >= flushed
    assert len(stream.records) == 51 * len(steps)
    last = stream.records[-1]
    assert isinstance(last, Sample)
    assert last.subject == "w49"


def test_what_is_killed_at_once_is_still_a_trace(tmp_path: Path) -> None:
    program = WRITING.replace(
        "step = 0", "print(0, flush=True)\nimport time; time.sleep(30)\nstep = 0"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
    [stream] = read_trace(tmp_path).streams
    assert stream.records == ()


FULL_DISK = """
import resource, signal, sys
from tspec.trace.errors import TraceError
from tspec.trace.model import Boundary, Context
from tspec.trace.write import TraceWriter
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000))
with TraceWriter(sys.argv[1], 0) as writer:
    for step in range(1, 100):
        writer.add(Boundary(step, Context(step), "step", step))
        try:
            writer.flush()
        except TraceError as error:
            print(error)
"""


def test_a_disk_that_is_full_ends_the_recording_at_the_batch_before(tmp_path: Path) -> None:
    command = [sys.executable, "-c", FULL_DISK, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"cannot write `{tmp_path / 'rank-0.arrow'}`: File too large\n"
    [stream] = read_trace(tmp_path).streams
    assert stream.ending is not None
    assert (stream.ending.how, stream.ending.torn) == ("cut off", 0)
    assert [record.seq for record in stream.records] == list(range(1, len(stream.records) + 1))
    assert len(stream.records) > 3


def test_an_interrupt_within_a_batch_ends_the_recording_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with TraceWriter(tmp_path, 0) as writer:
        for step in (1, 2, 3, 4):
            writer.add(Boundary(step, Context(step), "step", step))
            with monkeypatch.context() as interrupted, suppress(KeyboardInterrupt):
                if step == 3:
                    interrupted.setattr(write, "framed", interrupt)
                writer.flush()
    [stream] = read_trace(tmp_path).streams
    assert stream.ending == Ending("cut off", 2)
    assert len(stream.records) == 2


def interrupt(*_: object) -> bytes:
    raise KeyboardInterrupt
