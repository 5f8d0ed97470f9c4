"""Ranks are found however they start, children end their streams, and what is killed stays readable."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from tests.families import EXHAUSTIVE
from tests.record.processes import without_size
from tspec.trace.model import Finish, Sample
from tspec.trace.read import read_trace

JOBS = Path(__file__).with_name("jobs.py")
RECORD = [sys.executable, "-m", "tspec", "record", "-o"]


def record(
    out: Path, *script: str | Path, launcher: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    head = [*launcher, "-m", "tspec", "record", "-o"] if launcher else RECORD
    command = [*head, str(out), "--", *map(str, script)]
    return without_size(
        subprocess.run(command, text=True, capture_output=True, timeout=240, check=False)
    )


@pytest.mark.gloo
@pytest.mark.parametrize("method", ["fork", pytest.param("spawn", marks=EXHAUSTIVE)])
def test_ranks_started_by_multiprocessing(method: str, tmp_path: Path) -> None:
    done = record(tmp_path / "trace", JOBS, "mlp", tmp_path / "out", "2", method)
    assert (done.returncode, done.stderr) == (0, "")
    trace = read_trace(tmp_path / "trace")
    assert trace.world == 2 and [s.rank for s in trace.streams] == [0, 1]
    for stream in trace.streams:
        assert isinstance(stream.records[-1], Finish)
        groups = {
            r.subject: r.fields["ranks"]
            for r in stream.records
            if isinstance(r, Sample) and r.kind == "group"
        }
        assert groups["world"] == groups["dp"] == (0, 1)


@pytest.mark.gloo
@pytest.mark.slow
def test_ranks_started_by_torchrun(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        textwrap.dedent(f"""
        import os, sys
        sys.path.insert(0, {str(JOBS.parent)!r})
        import jobs
        jobs.work(int(os.environ["RANK"]), "mlp", sys.argv[1], 2, "env://")
        """)
    )
    launcher = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2", "--standalone")
    done = record(tmp_path / "trace", script, tmp_path / "out", launcher=launcher)
    assert done.returncode == 0, done.stderr
    trace = read_trace(tmp_path / "trace")
    assert trace.world == 2 and [s.rank for s in trace.streams] == [0, 1]
    assert all(isinstance(s.records[-1], Finish) for s in trace.streams)


LOOP = """
    import os, sys, time
    import torch
    from torch import nn

    class Noisy(torch.utils.data.Dataset):
        def __len__(self):
            return 12

        def __getitem__(self, index):
            return torch.rand(4)

    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    workers = int(sys.argv[2])
    loader = torch.utils.data.DataLoader(Noisy(), 4, num_workers=workers)
    for step, x in enumerate(x for epoch in range(2) for x in loader):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        print("step", step + 1, flush=True)
        if sys.argv[1] == "wait" and step == 3:
            time.sleep(100)
    if sys.argv[1] == "crash":
        raise ValueError("a fault of the script")
    if sys.argv[1] == "exit":
        sys.exit(5)
"""


@pytest.fixture
def loop(tmp_path: Path) -> Path:
    script = tmp_path / "loop.py"
    script.write_text(textwrap.dedent(LOOP))
    return script


@pytest.mark.slow
def test_what_is_killed_stays_readable(loop: Path, tmp_path: Path) -> None:
    command = [*RECORD, str(tmp_path / "trace"), "--", str(loop), "wait", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if line == "step 4\n":
            break
    time.sleep(0.1)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(30)
    process.stdout.close()
    (stream,) = read_trace(tmp_path / "trace").streams
    assert stream.records[-1].context.step >= 3
    assert not isinstance(stream.records[-1], Finish)


@pytest.mark.slow
def test_workers_of_loaders_have_streams_of_their_own(loop: Path, tmp_path: Path) -> None:
    done = record(tmp_path / "trace", loop, "end", "2")
    assert (done.returncode, done.stderr) == (0, "")
    trace = read_trace(tmp_path / "trace")
    assert sorted((s.worker is not None, s.worker or 0) for s in trace.streams) == [
        (False, 0),
        (True, 0),
        (True, 1),
        (True, 1000),
        (True, 1001),
    ]
    states = [
        sample.fields["state"]
        for stream in trace.streams
        for sample in stream.records
        if isinstance(sample, Sample) and (sample.kind, sample.subject) == ("generator", "default")
        if stream.worker is not None
    ]
    assert len({state.digest for state in states}) >= 2
    main = trace.stream(0)
    assert main is not None and main.records[-1].context.step == 6


@pytest.mark.slow
def test_the_scripts_own_status_and_traceback(loop: Path, tmp_path: Path) -> None:
    left = record(tmp_path / "left", loop, "exit", "0")
    assert (left.returncode, left.stderr) == (5, "")
    crashed = record(tmp_path / "crashed", loop, "crash", "0")
    assert crashed.returncode == 1
    assert crashed.stderr.splitlines()[-1] == "ValueError: a fault of the script"
    assert "tspec" not in crashed.stderr.replace(str(tmp_path), "")
    for name in ("left", "crashed"):
        (stream,) = read_trace(tmp_path / name).streams
        assert stream.records[-1].context.step == 6 and stream.torn == 0
        assert not isinstance(stream.records[-1], Finish)


CODE = """
    import tspec, torch
    from torch import nn

    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    code = nn.Module.__call__.__code__
    with tspec.record({out!r}):
        tspec.annotate(task="sum")
        for number in (10, 20, 30):
            tspec.step(number)
            model(torch.ones(2, 4)).sum().backward()
            optimizer.step()
    assert nn.Module.__call__.__code__ is code
    model(torch.ones(2, 4))
    tspec.step()
"""


@pytest.mark.slow
def test_a_block_of_code(tmp_path: Path) -> None:
    code = textwrap.dedent(CODE.format(out=str(tmp_path / "trace")))
    subprocess.run([sys.executable, "-c", code], check=True, timeout=240)
    (stream,) = read_trace(tmp_path / "trace").streams
    assert {r.context.step for r in stream.records} == {10, 20, 30}
    said = [r.fields for r in stream.records if isinstance(r, Sample) and r.kind == "context"]
    assert said[0]["task"] == "sum"


NESTED = """
    import subprocess, sys
    import torch, tspec

    def train():
        model = torch.nn.Linear(2, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            optimizer.zero_grad()
            model(torch.ones(1, 2)).sum().backward()
            optimizer.step()

    if __name__ == "__main__" and len(sys.argv) > 1:
        with tspec.record(sys.argv[1]):
            subprocess.run([sys.executable, __file__], check=True)
        subprocess.run([sys.executable, __file__], check=True)
    train()
"""


@pytest.mark.slow
@pytest.mark.exhaustive
def test_a_recording_within_another_follows_children_beside_it(tmp_path: Path) -> None:
    """Both follow the child that starts within both; only the outer one follows the other."""
    script = tmp_path / "train.py"
    script.write_text(textwrap.dedent(NESTED))
    done = record(tmp_path / "outer", script, tmp_path / "inner")
    assert done.returncode == 0 and "is not followed" not in done.stderr, done.stderr
    counts = {
        name: sum(
            any(r.context.step == 2 for r in stream.records)
            for stream in read_trace(tmp_path / name).streams
        )
        for name in ("outer", "inner")
    }
    assert counts == {"outer": 3, "inner": 1}
