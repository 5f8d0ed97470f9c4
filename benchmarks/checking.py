"""How long the offline checker takes on at least a million events. Aim: under 10 s.

The trace is a recording of the digits CNN of which the steps are repeated, so that it holds what a long run holds.
"""

import json
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from measure import DIGITS, ROOT, TSPEC, Command, in_turn, once

from tspec.trace.meta import write_meta
from tspec.trace.model import Begin, Boundary, End, Finish, Record
from tspec.trace.read import read_trace
from tspec.trace.write import TraceWriter

EVENTS = 1_000_000
ROUNDS = 3
FLUSH = 50_000


def lengthened(records: tuple[Record, ...], least: int) -> Iterator[Record]:
    """The records, of which the whole steps are repeated until there are at least so many."""
    opens = [i for i, r in enumerate(records) if isinstance(r, Boundary) and r.span == "step"]
    first, last = opens[1], opens[-1]
    head, body, tail = records[:first], records[first:last], records[last:]
    steps = len(opens) - 2
    instants = body[-1].seq + 1 - body[0].seq
    calls = 1 + max(r.call for r in records if isinstance(r, Begin | End))
    rounds = -(-(least - len(head) - len(tail)) // len(body))
    yield from head
    for turn in range(rounds):
        for record in body:
            yield shifted(record, turn * instants, turn * steps, turn * calls)
    for record in tail:
        yield shifted(record, (rounds - 1) * instants, (rounds - 1) * steps, (rounds - 1) * calls)


def shifted(record: Record, instants: int, steps: int, calls: int) -> Record:
    """A record as many instants, steps and calls later."""
    context = replace(record.context, step=record.context.step + steps)
    moved = replace(record, seq=record.seq + instants, context=context)
    match moved:
        case Begin(parent=parent):
            outer = None if parent is None else parent + calls
            return replace(moved, call=moved.call + calls, parent=outer)
        case End():
            return replace(moved, call=moved.call + calls)
        case Boundary(span="step"):
            return replace(moved, index=moved.index + steps)
    return moved


def lengthen(recording: Path, long: Path) -> int:
    """Write the long trace; the number of its records."""
    [stream] = read_trace(recording).streams
    long.mkdir()
    write_meta(long, 1)
    count = 0
    with TraceWriter(long, 0) as writer:
        for record in lengthened(stream.records, EVENTS):
            writer.add(record)
            count += 1
            if count % FLUSH == 0 or isinstance(record, Finish):
                writer.flush()
        writer.flush()
    return count


def main() -> None:
    """Print the time of a whole `tspec check` on the long trace, with all packs."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        recording, long, report = folder / "recording", folder / "long", folder / "report.json"
        once(Command([*TSPEC, "record", "-o", str(recording), "--", str(DIGITS), "--epochs", "1"]))
        events = lengthen(recording, long)
        check = [
            *TSPEC,
            "check",
            str(ROOT / "specs"),
            "--trace",
            str(long),
            "--report",
            str(report),
        ]
        costs = in_turn({"check": Command(check, statuses=(0, 1))}, ROUNDS)["check"]
        found = len(json.loads(report.read_text()))
        size = sum(file.stat().st_size for file in long.iterdir()) / 1e6
    best = min(cost.wall for cost in costs)
    print(
        f"  {events:,} events, {size:.0f} MB: {best:.1f} s, {events / best / 1e3:.0f} thousand a second"
    )
    print(f"  {found} findings")


if __name__ == "__main__":
    main()
