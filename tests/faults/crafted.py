"""Recordings that are well written and say odd things, as one from a stranger may: commands end as they should."""

from __future__ import annotations

import math
import shutil
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from random import Random
from typing import Any

from tests.faults import recordings
from tests.faults.commands import tspec
from tests.faults.hostile import unprintable
from tests.faults.outcome import Failure, Outcome, Progress
from tests.faults.worker import Worker
from tspec.trace.meta import write_meta
from tspec.trace.model import Context, Finish, Location, Missing, Record, Ref, Tensor
from tspec.trace.write import TraceWriter

LARGE = 2**62
ODD: tuple[Any, ...] = (
    None, True, 0, 1, -1, LARGE, -LARGE, 2**70, 0.0, -1.5, math.nan, math.inf, "", " ", "a b", "\x00", "\x1b[31m",
    "\ud800", "\x07\u202e", "a\n::error::b", "' OR 1=1 --", "層", "w0", "parameter", "optimizer.step", "torch.nn.Linear torch.nn.Module", "../x",
    (), (1,), (1, "a"), ((),), frozenset(), frozenset({1}), {}, {"a": 1}, {"": {}}, Missing.ABSENT, Missing.NO_HISTORY,
    Ref("parameter", "w0"), Ref("", ""), Ref("no such kind", "x"), Tensor(), Tensor(digest=1, norm=-1.0, shape=(0, LARGE)),
    (Tensor(), Tensor()), Tensor(numel=-5, zeros=9, dtype="no dtype", device="nowhere"),
)  # fmt: skip
NUMBERS = (0, 1, -1, 2, 5, 1000, LARGE, -LARGE)
NAMES = tuple(each for each in ODD if isinstance(each, str) and each != "\ud800")
SPANS = ("step", "microbatch", "epoch")


def run(count: int, seed: int, progress: Progress = lambda done: None) -> Outcome:
    """Write `count` odd recordings, and run commands on them in another process."""
    counts: Counter[str] = Counter()
    failures: list[Failure] = []
    with tempfile.TemporaryDirectory() as made, Worker(__name__) as worker:
        folder = Path(made) / "crafted"
        for number in range(count):
            chance = Random(f"crafted {seed} {number}")
            _write(folder, chance)
            outcome, problem = worker.ask({"folder": str(folder)})
            if problem is None:
                counts[outcome] += 1
            else:
                files = {path.name: path.read_bytes() for path in sorted(folder.iterdir())}
                failures.append(Failure(f"crafted-{seed}-{number}", problem, files))
            shutil.rmtree(folder)
            progress(number + 1)
    return Outcome(dict(counts), tuple(failures))


def look(folder: str) -> tuple[str, str | None]:
    """Run what reads recordings."""
    statuses = []
    for arguments in (
        ("trace", "show", folder),
        ("check", "std.hygiene", "std.health", "--no-config", "--trace", folder),
        ("why", "std.hygiene.gradients_are_cleared", "--trace", folder),
    ):
        ran = tspec(*arguments)
        if ran.problem is not None:
            return "", f"tspec {' '.join(arguments)}: {ran.problem}"
        if obeyed := unprintable(ran.out + ran.err):
            return "", f"tspec {' '.join(arguments)} prints {obeyed}"
        statuses.append(ran.status)
    return "refused" if statuses[0] == 2 else "shown and checked", None


def _write(folder: Path, chance: Random) -> None:
    """One or two ranks, each with some records changed, left out, doubled or moved."""
    folder.mkdir()
    ranks = chance.choice([1, 1, 2])
    write_meta(folder, ranks, {"command": chance.choice(NAMES)})
    for rank in range(ranks):
        records: list[Record] = []
        for step in range(recordings.STEPS):
            records += recordings.step_of(rank, step)
        records.append(Finish(10**6, Context(recordings.STEPS)))
        for _ in range(chance.choice([1, 1, 2, 5])):
            _edit(records, chance)
        with TraceWriter(folder, rank) as writer:
            for number, record in enumerate(records):
                writer.add(record)
                if number % 40 == 39:
                    writer.flush()


def _edit(records: list[Record], chance: Random) -> None:
    at, other = chance.randrange(len(records)), chance.randrange(len(records))
    kind = chance.random()
    if kind < 0.1 and len(records) > 2:
        del records[at]
    elif kind < 0.2:
        records.insert(other, records[at])
    elif kind < 0.3:
        records[at], records[other] = records[other], records[at]
    else:
        records[at] = _changed(records[at], chance)


def _changed(record: Record, chance: Random) -> Record:
    """A record with one of its parts replaced by another of the part's type."""
    name = chance.choice([field.name for field in fields(record)])
    value = getattr(record, name)
    new: Any
    if name == "context":
        part = chance.choice(["step", "epoch", "microbatch"])
        new = replace(value, **{part: chance.choice(NUMBERS)})
    elif isinstance(value, Mapping):
        key = chance.choice([*value, *NAMES])
        new = {**value, key: chance.choice([each for each in ODD if each is not None])}
    elif name == "span":
        new = chance.choice(SPANS)
    elif name == "location":
        file, function, text = chance.choices(NAMES, k=3)
        new = Location(file, chance.choice(NUMBERS), function, text)
    elif isinstance(value, bool):
        new = not value
    elif isinstance(value, int):
        new = chance.choice(NUMBERS)
    elif value is None:
        new = chance.choice(NAMES) if name == "error" else chance.choice(NUMBERS)
    else:
        new = chance.choice(NAMES)
    return replace(record, **{name: new})
