"""Jobs that are killed at random moments: at most the step under way is lost, and the recording is read."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from random import Random

from tests.faults.outcome import Failure, Outcome, Progress
from tests.faults.processes import JOB, PATIENCE, ROOT, TSPEC, environment
from tspec.trace.errors import TraceError
from tspec.trace.model import Begin, Boundary
from tspec.trace.read import read_trace

FOREVER = "50000"
"""Steps; many more than a job makes before it is killed, and an end if nobody does."""
COMMANDS = ("record", "run")
SIGNALS = (signal.SIGKILL, signal.SIGTERM)


def run(count: int, seed: int, progress: Progress = lambda done: None) -> Outcome:
    """Kill `count` jobs: by SIGKILL and SIGTERM in turn, recorded, and run with rules and recorded."""
    counts: Counter[str] = Counter()
    failures: list[Failure] = []
    for number in range(count):
        chance = Random(f"kill {seed} {number}")
        command = COMMANDS[number % 2]
        by = SIGNALS[(number + number // 2) % 2]
        with tempfile.TemporaryDirectory() as made:
            trace = Path(made) / "trace"
            last, said = _killed(command, by, trace, chance)
            outcome, problem = _look(trace, last, said)
            if problem is None:
                counts[outcome] += 1
            else:
                held = sorted(trace.iterdir()) if trace.is_dir() else []
                files = {path.name: path.read_bytes() for path in held}
                problem = f"{command}, {by.name}, last step said {last}: {problem}\n{said}"
                failures.append(Failure(f"kill-{seed}-{number}", problem, files))
        progress(number + 1)
    return Outcome(dict(counts), tuple(failures))


def _killed(command: str, by: signal.Signals, trace: Path, chance: Random) -> tuple[int, str]:
    """Start a job, and kill it. The last step that it said, 0 if none, and its standard error.

    One in five is killed while it starts, the others at some moment after their first step.
    SIGKILL goes to all of the job's processes, as from the kernel when memory is short; SIGTERM to the
    first, as from a scheduler.
    """
    told = ("-o", trace) if command == "record" else ("std.hygiene", "--record", trace)
    arguments = [*TSPEC, command, *map(str, told), "--", str(JOB), FOREVER]
    early = chance.random() < 0.2
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(
            arguments,
            cwd=ROOT,
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        ) as process,
    ):
        assert process.stdout is not None
        guard = threading.Timer(PATIENCE, os.killpg, (process.pid, signal.SIGKILL))
        guard.start()
        try:
            first = "" if early else process.stdout.readline()
            time.sleep(chance.uniform(0.0, 4.0 if early else 1.0))
            if by is signal.SIGKILL:
                os.killpg(process.pid, by)
            else:
                process.send_signal(by)
            lines = (first + process.stdout.read()).split("\n")[:-1]
            process.wait()
        finally:
            guard.cancel()
        errors.seek(0)
        steps = [int(line) for line in lines if line.isdigit()]
        return (steps[-1] if steps else 0), errors.read()


def _look(trace: Path, last: int, said: str) -> tuple[str, str | None]:
    """What the recording holds of a job that had said so many steps, and what is wrong with that."""
    if "Traceback" in said or "internal error" in said:
        return "", "a traceback"
    if not trace.is_dir() or not any(trace.glob("rank-*.arrow")):
        return ("before the first step", None) if last == 0 else ("", "no recording")
    try:
        [stream] = read_trace(trace).streams
    except TraceError as error:
        return "", f"the recording is not read: {error}"
    assert stream.ending is not None
    opened = [r.index for r in stream.records if isinstance(r, Boundary) and r.span == "step"]
    if opened != list(range(1, len(opened) + 1)) or not last <= len(opened) <= last + 1:
        return "", f"steps {opened[:1]} to {opened[-1:]}, {len(opened)} in all"
    events = [r for r in stream.records if isinstance(r, Begin) and r.event == "optimizer.step"]
    updated = [event.context.step for event in events]
    if updated[: last - 1] != list(range(1, last)):
        return "", f"{len(updated)} updates"
    if stream.ending.how == "finished":
        return "", "a killed run is said to be finished"
    return f"read, {stream.ending.how}", None
