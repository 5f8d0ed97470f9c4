"""`--max-trace-size`: the recording ends before it takes more of the disk, and the job goes on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.record.processes import ROOT, python, recorded, tspec
from tspec.cli.app import app
from tspec.record.stream import StreamWriter
from tspec.trace.model import Boundary, Context, Record, Sample
from tspec.trace.read import read_trace
from tspec.trace.show import summary, text
from tspec.trace.sizes import in_words, size_of

LIMIT = 150_000
SCRIPT = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(60):
    optimizer.zero_grad()
    loss = model(torch.randn(5, 4)).pow(2).sum()
    loss.backward()
    optimizer.step()
print(loss.item())
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    return path


def size(folder: Path) -> int:
    """Of all files in a folder, in bytes."""
    return sum(path.stat().st_size for path in folder.iterdir())


def ends_in(stderr: str, limit: str = "150.0 kB") -> int:
    """The step in which the one line says that the recording ends."""
    said = r"^tspec: the recording of rank 0 ends in step (\d+): it reached its limit of (.*)\. The job goes on$"
    [(step, words)] = re.findall(said, stderr, re.MULTILINE)
    assert words == limit
    return int(step)


@pytest.mark.slow
def test_a_recording_ends_at_its_limit_and_the_job_goes_on(tmp_path: Path, script: Path) -> None:
    plain = python(script)
    done = recorded(tmp_path / "trace", script, options=["--max-trace-size", "150kB"])
    assert (done.returncode, done.stdout) == (0, plain.stdout), done.stderr
    step = ends_in(done.stderr)
    assert 2 < step < 59
    assert LIMIT / 2 < size(tmp_path / "trace") <= LIMIT
    [stream] = read_trace(tmp_path / "trace").streams
    assert stream.ending is not None
    assert (stream.ending.how, stream.ending.step) == ("limit", step)
    assert stream.records[-1].context.step == step
    shown = tspec("trace", "show", tmp_path / "trace")
    assert f"0-{step}" in shown.stdout
    assert "ended at its size limit" in shown.stdout
    checked = tspec("check", "std.hygiene", "--trace", tmp_path / "trace")
    assert checked.returncode == 0, checked.stdout
    assert f"rank 0: recording ends in step {step} at its size limit" in checked.stdout
    assert re.search(r"\d+ instances? undecided", checked.stdout), checked.stdout


def test_a_run_is_recorded_up_to_the_limit(tmp_path: Path, script: Path) -> None:
    done = tspec(
        "run", "std.hygiene", "--record", tmp_path / "trace",
        "--max-trace-size", "150kB", "--", script, cwd=ROOT,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    step = ends_in(done.stderr)
    assert size(tmp_path / "trace") <= LIMIT
    [stream] = read_trace(tmp_path / "trace").streams
    assert stream.ending is not None
    assert (stream.ending.how, stream.ending.step) == ("limit", step)


def test_a_limit_that_is_not_reached_changes_nothing(tmp_path: Path, script: Path) -> None:
    done = recorded(tmp_path / "trace", script, options=["--max-trace-size", "1GB"])
    assert done.returncode == 0
    assert "limit" not in done.stderr
    [stream] = read_trace(tmp_path / "trace").streams
    assert stream.ending is not None
    assert stream.ending.how == "finished"


# --- shares -----------------------------------------------------------------------------------------


def step(number: int, samples: int = 50) -> list[Record]:
    now = Context(number)
    return [
        Boundary(number * 100, now, "step", number),
        *(Sample(number * 100, now, "parameter", f"w{n}", {"lr": n / 7}) for n in range(samples)),
    ]


def fill(stream: StreamWriter, rank: int, world: int, steps: int = 200) -> None:
    for number in range(1, steps + 1):
        stream.add(step(number))
        stream.open(rank, world)
        stream.flush()
    stream.close()


def test_ranks_share_the_limit_equally(tmp_path: Path) -> None:
    for rank in (2, 0, 1):
        stream = StreamWriter(tmp_path, {"command": "x"}, LIMIT)
        fill(stream, rank, 3)
        assert stream.full
    assert LIMIT * 0.7 < size(tmp_path) <= LIMIT
    trace = read_trace(tmp_path)
    assert {s.ending.how for s in trace.streams if s.ending} == {"limit"}
    assert {s.ending.step for s in trace.streams if s.ending} == {stream.step}


def test_workers_count_with_their_rank(tmp_path: Path) -> None:
    for _ in range(40):
        worker = StreamWriter(tmp_path, {}, LIMIT)
        worker.worker = 0
        fill(worker, 0, 1, steps=2)
    assert LIMIT * 0.7 < size(tmp_path) <= LIMIT
    assert worker.full
    fill(rank := StreamWriter(tmp_path, {}, LIMIT), 0, 1)
    assert rank.full
    assert size(tmp_path) <= LIMIT
    assert "cut off" not in text(summary(tmp_path))


def test_without_room_for_a_beginning_there_is_no_file(tmp_path: Path) -> None:
    stream = StreamWriter(tmp_path, {}, 100_000)
    fill(stream, 0, 1000)
    assert stream.full
    assert list(tmp_path.glob("*.arrow")) == []


# --- words ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "size"),
    [
        ("500MB", 500_000_000),
        ("2GB", 2_000_000_000),
        ("1.5 GiB", 1_610_612_736),
        ("100kb", 100_000),
        ("3TB", 3 * 10**12),
        ("100000B", 100_000),
    ],
)
def test_sizes(written: str, size: int) -> None:
    assert size_of(written) == size


@pytest.mark.parametrize("written", ["", "2", "GB", "-2GB", "2 apples", "1e9GB", "nanMB", "2GBs"])
def test_what_is_no_size(written: str) -> None:
    with pytest.raises(ValueError, match=r"is not a size such as 500MB, 2GB or 1\.5GiB"):
        size_of(written)


def test_sizes_in_words() -> None:
    assert [in_words(n) for n in (12, 1500, 2_000_000, 3 * 10**12)] == [
        "12 bytes",
        "1.5 kB",
        "2.0 MB",
        "3.0 TB",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["record", "-o", "x", "--max-trace-size", "2 apples"], "is not a size such as 500MB"),
        (["record", "-o", "x", "--max-trace-size", "1kB"], "the least is 100.0 kB"),
        (["run", "std.hygiene", "--max-trace-size", "1GB"], "nothing is recorded without"),
    ],
)
def test_wrong_sizes_are_refused(script: Path, arguments: list[str], said: str) -> None:
    done = CliRunner().invoke(app, [*arguments, "--", str(script)])
    assert done.exit_code == 2
    assert said in re.sub(r"[\s│]+", " ", done.output)
