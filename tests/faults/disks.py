"""Disks that fill up while a job is recorded: one line says so, and the job goes on to its own end."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tests.faults.outcome import Failure, Outcome, Progress
from tests.faults.processes import JOB, PATIENCE, ROOT, TSPEC, environment
from tspec.trace.errors import TraceError
from tspec.trace.read import read_trace

STEPS = "60"
STOPPED = "tspec: the recording of rank 0 ends "
LIMIT = (
    "import os, resource, sys; size = int(sys.argv[1]);"
    "resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)); os.execv(sys.argv[2], sys.argv[2:])"
)
"""A program that runs another one, whose files cannot grow beyond a size in bytes."""


def run(count: int, seed: int, progress: Progress = lambda done: None) -> Outcome:
    """Record `count` jobs where there is no room for the recording: in a small tmpfs, or with small files."""
    counts: Counter[str] = Counter()
    failures: list[Failure] = []
    plain = subprocess.run(
        [sys.executable, JOB, STEPS], env=environment(), capture_output=True, text=True, check=True
    )
    for number in range(count):
        chance = Random(f"disk {seed} {number}")
        size = int(10 ** chance.uniform(2.5, 5.1))
        with tempfile.TemporaryDirectory() as made, _small(Path(made), size) as mounted:
            trace = Path(made) / "trace"
            command = [*TSPEC, "record", "-o", str(trace), "--", str(JOB), STEPS]
            if not mounted:
                command = [sys.executable, "-c", LIMIT, str(size), *command]
            done = subprocess.run(
                command,
                cwd=ROOT,
                env=environment(),
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
            problem = _problem(done, plain.stdout, trace)
        if problem is None:
            counts["a full tmpfs" if mounted else "a file at its limit"] += 1
        else:
            problem = f"{problem} ({size} bytes, status {done.returncode})\n{done.stderr}"
            failures.append(Failure(f"disk-{seed}-{number}", problem, {}))
        progress(number + 1)
    return Outcome(dict(counts), tuple(failures))


@contextlib.contextmanager
def _small(folder: Path, size: int) -> Iterator[bool]:
    """A file system of a size in bytes at a folder, and whether there may be one: it takes root."""
    options = f"size={max(size, 4096)}"
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    mounted = os.geteuid() == 0 and subprocess.run(command, capture_output=True).returncode == 0
    try:
        yield mounted
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)


def _problem(done: subprocess.CompletedProcess[str], plain: str, trace: Path) -> str | None:
    if done.returncode != 0 or done.stdout != plain:
        return "the job did not go on as it does without tspec"
    if done.stderr.count(STOPPED) != 1 or done.stderr.count("tspec:") != 1:
        return "the end of the recording is not said in one line"
    if "Traceback" in done.stderr:
        return "a traceback"
    with contextlib.suppress(TraceError):
        # Without a whole batch there may be nothing to read, which is a clear error.
        [stream] = read_trace(trace).streams
        if stream.ending is None or stream.ending.how not in ("torn", "cut off"):
            return f"the recording says {stream.ending}"
    return None
