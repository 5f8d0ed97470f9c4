"""Recordings to damage: small, of several batches, with every type of value."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from pathlib import Path

from tspec.trace.batches import END
from tspec.trace.meta import write_meta
from tspec.trace.model import (
    Begin,
    Boundary,
    Context,
    End,
    Finish,
    Missing,
    Record,
    Ref,
    Sample,
    Tensor,
    Value,
)
from tspec.trace.write import TraceWriter

STEPS = 6
EVENTS = ("optimizer.zero_grad", "forward", "backward", "optimizer.step")
ODD: dict[str, Value] = {
    "nothing": Missing.ABSENT,
    "unread": Missing.NOT_RECORDED,
    "yes": True,
    "many": 2**80,
    "ratio": math.nan,
    "name": "größe 層\x00",
    "half": "\ud800",
    "shape": (1, 2, 3),
    "nested": ((1, "a"), (Ref("parameter", "w 1"), -0.0)),
    "set": frozenset({"a", "b"}),
    "map": {"lr": 0.1, "betas": (0.9, 0.999)},
    "tensors": (Tensor(digest=-1, norm=math.inf, shape=(2, 0)), Missing.ABSENT, 3),
}


def write(folder: Path, kind: str) -> Path:
    """A recording of one kind: `one`, `killed` (without an end) or `ranks` (two, and a worker)."""
    folder.mkdir(parents=True)
    if kind == "ranks":
        write_meta(folder, 2, {"command": "train.py --größe 3"})
        for rank, worker in ((0, None), (1, None), (0, 0)):
            _write_stream(folder, rank, worker, finish=True)
        return folder
    write_meta(folder, 1, {"command": "train.py"})
    _write_stream(folder, 0, None, finish=kind == "one")
    return folder


def _write_stream(folder: Path, rank: int, worker: int | None, finish: bool) -> None:
    with TraceWriter(folder, rank, worker) as writer:
        for step in range(STEPS + 1):
            writer.add_all(step_of(rank, step))
            writer.flush()
        if finish:
            writer.add(Finish(10**6, Context(STEPS)))
    if not finish:
        os.truncate(writer.path, writer.path.stat().st_size - len(END))


def step_of(rank: int, step: int) -> Iterator[Record]:
    """What one step records: its boundary, calls in calls, and samples."""
    context, seq = Context(step, epoch=step // 4), step * 1000
    if step:
        yield Boundary(seq, context, "step", step)
    for number in range(5):
        data = Tensor(
            digest=step * 7 + number,
            norm=1.0 + step / 7,
            finite=True,
            shape=(number, 3),
            dtype="float32",
            device="cpu",
        )
        fields: dict[str, Value] = {"name": f"w{number}", "data": data, "requires_grad": True}
        yield Sample(seq + number, context, "parameter", f"w{number}", fields)
    yield Sample(seq + 8, context, "group", "world", {"ranks": (0, 1)})
    yield Sample(seq + 9, context, "context", "", {"loss": 1 / (step + 1), **ODD})
    outer: int | None = None
    for place, event in enumerate(EVENTS if step else ()):
        call = step * 10 + place
        yield Begin(seq + 20 + place * 2, context, call, outer, event, f"torch.{event}", ODD)
        error = "ValueError" if place == 1 and rank else None
        yield End(seq + 21 + place * 2, context, call, {"loss": float(step)}, error)
