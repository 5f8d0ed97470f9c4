"""The ranks whose recordings do not cover the whole run, and the ends of these recordings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tspec.trace.model import Ending, Finish, Stream, Trace, missing_ranks

if TYPE_CHECKING:
    from tspec.trace.read import Tables


@dataclass(frozen=True, slots=True)
class EndsEarly:
    """The recording of a rank that does not end with the end of its run, or ranks without one."""

    ranks: range
    """One rank; several only where they have no recording."""
    file: str
    """The path of the first rank's file, whether or not there is one."""
    ending: Ending | None
    """The ending of the recording; None if there is no file."""


def of_tables(tables: Tables) -> tuple[EndsEarly, ...]:
    """The recordings in a folder that end early, by rank."""
    streams = [table for table in tables.streams if table.worker is None]
    folder = tables.streams[0].path.parent
    return _early(((t.rank, t.ending) for t in streams), tables.world, folder)


def of_trace(trace: Trace) -> tuple[EndsEarly, ...]:
    """The recordings of a trace in memory that end early, by rank."""
    streams = [stream for stream in trace.streams if stream.worker is None]
    return _early(((s.rank, _ending(s)) for s in streams), trace.world, Path())


def _early(
    streams: Iterable[tuple[int, Ending]], world: int, folder: Path
) -> tuple[EndsEarly, ...]:
    endings = dict(streams)
    found = [(range(rank, rank + 1), ending) for rank, ending in endings.items()]
    early: list[tuple[range, Ending | None]] = [e for e in found if e[1].how != "finished"]
    early += [(ranks, None) for ranks in missing_ranks(endings, world)]
    early.sort(key=lambda each: each[0].start)
    return tuple(EndsEarly(r, str(folder / f"rank-{r.start}.arrow"), ending) for r, ending in early)


def _ending(stream: Stream) -> Ending:
    if stream.ending is not None:
        return stream.ending
    if not stream.records:
        return Ending("cut off")
    last = stream.records[-1]
    return Ending("finished" if isinstance(last, Finish) else "cut off", last.context.step)
