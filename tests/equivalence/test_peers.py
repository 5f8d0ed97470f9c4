"""Ranks that a scheduler starts: one that waits for a rank that is gone, or for ever, ends itself soon, and says why."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tspec.cli.app import app
from tspec.equivalence.peers import GONE, Peers, watching
from tspec.equivalence.progress import Progress
from tspec.equivalence.recording import Recording, write

HERE = Path(__file__).resolve().parent
OTHER = """
import sys, threading
from pathlib import Path
sys.path[0] = {root!r}
from tspec.equivalence.peers import Peers, watching
with watching(Peers(Path({folder!r}), 1, 2, 600)):
    print("begun", flush=True)
    threading.Event().wait()
"""


def killed_peer(folder: Path, seconds: float) -> list[Sequence[str]]:
    """A process of rank 1 is killed while this one, of rank 0, watches it for so long: what it is told."""
    script = OTHER.format(root=str(HERE.parents[1]), folder=str(folder))
    told: list[Sequence[str]] = []
    with watching(Peers(folder, 0, 2, 600), told.append):
        other = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
        assert other.stdout is not None and other.stdout.readline() == b"begun\n"
        other.send_signal(signal.SIGKILL)
        other.wait()
        other.stdout.close()
        until = time.monotonic() + seconds
        while not told and time.monotonic() < until:
            time.sleep(0.05)
    return told


@pytest.mark.slow
def test_a_rank_that_is_killed_is_missed(tmp_path: Path) -> None:
    progress = Progress(tmp_path, 0)
    progress.reached("outputs fc, step 2")
    [said] = killed_peer(tmp_path, 60)
    progress.close()
    first, here, other = said
    assert first == "rank 0 ends: rank 1 ended and recorded nothing"
    assert here.startswith(f"rank 0: last at outputs fc, step 2, at {Path(__file__).name}:")
    assert other == "rank 1: recorded nothing"


@pytest.mark.slow
def test_a_rank_that_has_recorded_is_not_missed(tmp_path: Path) -> None:
    write(tmp_path, 1, Recording({}, {}))
    assert killed_peer(tmp_path, GONE + 2) == []


@pytest.mark.slow
def test_a_rank_of_an_earlier_run_is_not_missed(tmp_path: Path) -> None:
    old = tmp_path / "rank-1.alive"
    old.touch()
    os.utime(old, (0, 0))
    told: list[Sequence[str]] = []
    with watching(Peers(tmp_path, 0, 2, 600), told.append):
        time.sleep(GONE + 2)
    assert told == []


def tspec(*arguments: str) -> str:
    spec = str(HERE / "data_parallel.tspec")
    name = ("--equivalence", "two_ranks_are_one")
    found = CliRunner().invoke(app, ["run", spec, *name, *arguments])
    assert found.exit_code == 0, found.output
    return found.stdout


def started(command: str, ranks: int) -> list[subprocess.Popen[str]]:
    """The processes of a printed command, as a scheduler starts them: nobody ends one for the others."""
    words = shlex.split(command)
    module = words[words.index("-m", 1) :]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    meets = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(ranks)}
    return [
        subprocess.Popen(
            [sys.executable, *module],
            env=os.environ | meets | {"RANK": str(rank), "LOCAL_RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(ranks)
    ]


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.gloo
@pytest.mark.parametrize(
    ("script", "options", "why"),
    [
        ("killed", (), "rank 1 ended and recorded nothing"),
        ("stalled", ("--stall-timeout", "5"), "no rank came further for 5 s"),
    ],
)
def test_a_run_of_a_scheduler_ends_soon_if_a_rank_is_killed_or_never_comes(
    tmp_path: Path, script: str, options: tuple[str, ...], why: str
) -> None:
    folder, job = ("--record", str(tmp_path / "both")), str(HERE / "data_parallel.py")
    tspec(*folder, "--only", "reference", "--", job)
    asked = ("--only", "candidate", "--print-commands", *options)
    command = tspec(*folder, *asked, "--", str(HERE / f"{script}.py"))
    began, ranks = time.monotonic(), started(command.strip(), 2)
    try:
        said = [each.communicate(timeout=180)[1] for each in ranks]
    finally:
        for each in ranks:
            each.kill()
            each.wait()
    # Of two that stall the slower one may be told by gloo that the other has ended.
    [found, *_] = (each for each in said if "tspec: rank" in each)
    rank = int(found.partition("tspec: rank ")[2].partition(" ")[0])
    first, *places = found[found.index("tspec: rank") :].splitlines()
    assert first == f"tspec: rank {rank} ends: {why}"
    waits = {"killed": "at killed.py:", "stalled": "in all_reduce at stalled.py:"}[script]
    assert rank or waits in places[0], said
    assert all(f"  rank {n}: last at " in place for n, place in enumerate(places))
    assert all(", step 2, micro-batch 1" in place for place in places)
    codes = [each.returncode for each in ranks]
    assert codes == [1, -signal.SIGKILL if script == "killed" else 1]
    assert time.monotonic() - began < 150  # gloo waits for half an hour
