"""However a checked job ends, it keeps its own status, and what was found is written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.families import EXHAUSTIVE

ROOT = Path(__file__).resolve().parents[2]
JOB = """
import sys, tempfile, time
import torch, torch.distributed as dist, torch.multiprocessing as mp
from torch import nn

def train(how, rank=0):
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(6):
        model(torch.randn(3, 4)).square().mean().backward()
        optimizer.step()
        if step == 4 and rank == 0:
            if how == "crash":
                raise ValueError("boom")
            if how == "leave":
                sys.exit(3)
            if how == "wait":
                print("READY", flush=True)
                time.sleep(60)

def work(rank, meeting, how):
    dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    train(how, rank)

if __name__ == "__main__":
    how = sys.argv[1]
    if len(sys.argv) == 2:
        train(how)
    else:
        with tempfile.TemporaryDirectory() as folder:
            mp.spawn(work, (f"file://{folder}/meeting", how), nprocs=2)
"""


def started(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    script = folder / "job.py"
    script.write_text(JOB)
    command = [sys.executable, "-m", "tspec", "run", "specs/essentials"]
    command += ["--report", str(folder / "report.json"), "--", str(script), *arguments]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "TSPEC_TIMEOUT": "10"}
    return subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=-1,
        stderr=-1,
        text=True,
        start_new_session=True,
        preexec_fn=hears_interrupts,
    )


def hears_interrupts() -> None:
    """As from a terminal: what a shell starts in the background ignores them, and so do its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def found(folder: Path) -> set[str]:
    rules = json.loads((folder / "report.json").read_text())
    return {one["rule"].rsplit(".", 1)[-1] for one in rules}


@pytest.mark.parametrize(
    ("how", "status"), [("crash", 1), pytest.param("leave", 3, marks=EXHAUSTIVE)]
)
def test_a_script_that_fails_keeps_its_status(tmp_path: Path, how: str, status: int) -> None:
    job = started(tmp_path, how)
    _, said = job.communicate(timeout=300)
    assert job.returncode == status
    assert ("ValueError: boom" in said) == (how == "crash")
    assert "gradients_are_cleared" in found(tmp_path)


@pytest.mark.slow
def test_what_was_found_is_written_when_it_is_interrupted(tmp_path: Path) -> None:
    job = started(tmp_path, "wait")
    assert job.stdout is not None
    assert job.stdout.readline() == "READY\n"
    job.send_signal(signal.SIGINT)
    job.communicate(timeout=200)
    assert job.returncode == 130
    assert "gradients_are_cleared" in found(tmp_path)


@pytest.mark.slow
@pytest.mark.gloo
def test_a_rank_that_crashes_leaves_what_was_found(tmp_path: Path) -> None:
    job = started(tmp_path, "crash", "ranks")
    _, said = job.communicate(timeout=300)
    assert job.returncode == 1
    assert "ValueError: boom" in said
    assert "gradients_are_cleared" in found(tmp_path)


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
def test_all_ranks_interrupted_leave_what_they_found(tmp_path: Path) -> None:
    job = started(tmp_path, "wait", "ranks")
    assert job.stdout is not None
    assert job.stdout.readline() == "READY\n"
    os.killpg(job.pid, signal.SIGINT)  # as a terminal does
    job.communicate(timeout=200)
    assert job.returncode in (1, 130)
    assert "gradients_are_cleared" in found(tmp_path)
