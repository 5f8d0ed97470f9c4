"""Damaged recordings: each is a clear error, a cut that is reported, or the same content. Never another."""

from __future__ import annotations

import functools
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from random import Random

from tests.faults import recordings
from tests.faults.commands import tspec
from tests.faults.mutations import damaged_bytes
from tests.faults.outcome import Failure, Outcome, Progress
from tests.faults.worker import Worker
from tests.trace.bits import bits
from tspec.trace.errors import TraceError
from tspec.trace.model import Stream, Trace
from tspec.trace.read import open_tables, read_trace

KINDS = ("one", "killed", "ranks")
COMMANDS_EACH = 50
"""Every so many inputs the commands that read recordings are run; the others are only read."""
WHOLE = ("finished", "stopped")
"""How a stream ends that was written to its end."""


def run(count: int, seed: int, progress: Progress = lambda done: None) -> Outcome:
    """Damage `count` recordings, and read them in another process."""
    counts: Counter[str] = Counter()
    failures: list[Failure] = []
    with tempfile.TemporaryDirectory() as made, Worker(__name__) as worker:
        folder = Path(made)
        wholes = [recordings.write(folder / kind, kind) for kind in KINDS]
        for number in range(count):
            chance = Random(f"trace {seed} {number}")
            whole, damaged = chance.choice(wholes), folder / "damaged"
            shutil.copytree(whole, damaged)
            _damage(damaged, chance)
            question = {
                "whole": str(whole),
                "damaged": str(damaged),
                "commands": number % COMMANDS_EACH == 0,
            }
            outcome, problem = worker.ask(question)
            if problem is None:
                counts[outcome] += 1
            else:
                files = {path.name: path.read_bytes() for path in sorted(damaged.iterdir())}
                failures.append(Failure(f"trace-{seed}-{number}", problem, files))
            shutil.rmtree(damaged)
            progress(number + 1)
    return Outcome(dict(counts), tuple(failures))


def _damage(folder: Path, chance: Random) -> None:
    """Change one file of a recording."""
    files = sorted(folder.iterdir())
    streams = [path for path in files if path.suffix == ".arrow"]
    file = chance.choice(files if chance.random() < 0.2 else streams)
    content = file.read_bytes()
    damaged = damaged_bytes(content, chance)
    while damaged == content:
        damaged = damaged_bytes(content, chance)
    file.write_bytes(damaged)


# --- in the other process -----------------------------------------------------------------------


def look(whole: str, damaged: str, commands: bool) -> tuple[str, str | None]:
    """The outcome of reading a damaged recording, and what is wrong with it."""
    outcome, problem = _read(_of(whole), damaged)
    if problem is not None or not commands:
        return outcome, problem
    for arguments in (
        ("trace", "show", damaged),
        ("check", "std.hygiene", "--no-config", "--trace", damaged),
        ("why", "std.hygiene.gradients_are_cleared", "--trace", damaged),
    ):
        ran = tspec(*arguments)
        if ran.problem is not None:
            return "", f"tspec {' '.join(arguments)}: {ran.problem}"
        if outcome == "a clear error" and ran.status != 2:
            return "", f"tspec {' '.join(arguments)} ends with {ran.status}: {ran.out}{ran.err}"
    return outcome, None


@functools.cache
def _of(folder: str) -> Trace:
    return read_trace(folder)


def _read(whole: Trace, folder: str) -> tuple[str, str | None]:
    try:
        trace = read_trace(folder)
    except TraceError as error:
        if "\n" in str(error) or folder not in str(error):
            return "", f"an unclear error: {error}"
        return "a clear error", None
    queried = open_tables(folder, ("record",))
    for table, stream in zip(queried.streams, trace.streams, strict=True):
        if bits(table.ending) != bits(stream.ending):
            return "", f"two readings differ: {table.ending}, {stream.ending}"
    if (trace.world, dict(trace.meta)) != (whole.world, dict(whole.meta)):
        return "", f"silently another job: {trace.world} ranks, {trace.meta}"
    outcome = "the same content"
    for before, after in zip(whole.streams, trace.streams, strict=True):
        problem = _differs(before, after)
        if problem is not None:
            return "", problem
        if bits(after.ending) != bits(before.ending):
            outcome = "a cut that is reported"
    return outcome, None


def _differs(before: Stream, after: Stream) -> str | None:
    """What a damaged stream says that the whole one did not, or leaves out without a word."""
    assert after.ending is not None
    there, here = list(map(bits, before.records)), list(map(bits, after.records))
    if here != there[: len(here)]:
        return f"silently other content: rank {after.rank}, {after.ending.words}"
    if after.ending.how in WHOLE and len(here) < len(there):
        return f"silently cut: rank {after.rank}, {after.ending.words}"
    return None
