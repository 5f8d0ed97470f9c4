"""A summary of a trace as text: `tspec trace show DIR`."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tspec.printable import visible
from tspec.trace import shards
from tspec.trace.model import Ending, missing_ranks, ranks_in_words
from tspec.trace.read import Table, open_tables
from tspec.trace.shards import ParameterSharding
from tspec.trace.sizes import in_words
from tspec.values import show

WIDTH = 80
NO_BREAK = "\u00a0"  # `textwrap` does not break lines there
_READ = (*shards.COLUMNS, "place", "step", "epoch", "gone")
_NO_ENTITIES = ("context", "group")
"""Kinds of samples that are no subjects."""


@dataclass(frozen=True, slots=True)
class StreamSummary:
    """The recording of one process. `steps` and `epochs` are first and last, or None if there are
    none.
    """

    rank: int
    worker: int | None
    records: int
    bytes: int
    ending: Ending
    steps: tuple[int, int] | None
    epochs: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class TraceSummary:
    """The contents of a trace, over all its streams.

    `events` counts calls by event. `entities` counts distinct subjects by kind over all ranks.
    `context` and `groups` are the names of the context and the axes of the job.
    """

    folder: Path
    world: int
    meta: Mapping[str, str]
    streams: tuple[StreamSummary, ...]
    events: Mapping[str, int]
    entities: Mapping[str, int]
    context: tuple[str, ...]
    groups: tuple[str, ...]
    shardings: Mapping[str, ParameterSharding]
    """The parameters that are sharded over ranks."""

    @property
    def missing_ranks(self) -> tuple[range, ...]:
        """Ranks of the job that have no stream."""
        held = (stream.rank for stream in self.streams if stream.worker is None)
        return missing_ranks(held, self.world)


def summary(folder: Path | str) -> TraceSummary:
    """Read a trace's folder. Raises TraceError as `tspec.trace.read.open_tables`."""
    tables = open_tables(folder, _READ)
    events: Counter[str] = Counter()
    subjects: set[tuple[str, str]] = set()
    fields: set[tuple[str, str]] = set()
    cut: dict[str, ParameterSharding] = {}
    for table in tables.streams:
        events.update(_count(_where(table.rows, "tag", "begin"), "what"))
        samples = _where(table.rows, "tag", "sample", heads=False)
        subjects.update(_distinct(samples, "what", "subject"))
        cut |= shards.shardings(samples)
        fields.update(_distinct(_where(samples, "what", "context", heads=False), "what", "field"))
    entities = Counter(kind for kind, _ in subjects if kind not in _NO_ENTITIES)
    return TraceSummary(
        Path(folder),
        tables.world,
        tables.meta,
        tuple(_stream(table) for table in tables.streams),
        _by_count(events),
        _by_count(entities),
        tuple(sorted(name for _, name in fields if name)),
        tuple(sorted(name for kind, name in subjects if kind == "group")),
        cut,
    )


def text(summary: TraceSummary) -> str:
    """A summary as text of at most 80 columns, where names permit."""
    size = sum(stream.bytes for stream in summary.streams)
    records = sum(stream.records for stream in summary.streams)
    lines = [
        f"{visible(str(summary.folder))}: {records:,} records, {in_words(size)}, "
        f"{_ranks(summary.world)}"
    ]
    lines += [f"  {visible(f'{key}: {value}')}" for key, value in summary.meta.items()]
    lines += ["", *_stream_lines(summary)]
    lines += _listed("calls by event", _counts(summary.events))
    lines += _listed("subjects by kind", _counts(summary.entities))
    lines += _listed("known at every moment", summary.context)
    lines += _listed("groups", summary.groups)
    if summary.shardings:
        lines += _listed("sharded parameters", _cuts(summary.shardings))
    lines += ["", "`tspec explain NAME` says what a name means, and which module to `use` for it"]
    return "\n".join(lines)


# --- counting -----------------------------------------------------------------------------------


def _where(rows: pa.Table, column: str, value: str, heads: bool = True) -> pa.Table:
    """The rows that hold a name in a column; with `heads` one for each record."""
    kept = pc.equal(rows.column(column).cast(pa.string()), value)
    if heads:
        kept = pc.and_(kept, pc.equal(rows.column("place"), 0))
    return rows.filter(kept)


def _count(rows: pa.Table, column: str) -> dict[str, int]:
    counted = pc.value_counts(rows.column(column).cast(pa.string()))
    return {entry["values"]: entry["counts"] for entry in counted.to_pylist()}


def _distinct(rows: pa.Table, *columns: str) -> set[tuple[Any, ...]]:
    names = [rows.column(column).cast(pa.string()) for column in columns]
    grouped = pa.table(names, names=list(columns)).group_by(list(columns)).aggregate([])
    return set(zip(*(grouped.column(column).to_pylist() for column in columns), strict=True))


def _stream(table: Table) -> StreamSummary:
    tags = _count(table.rows.filter(pc.equal(table.rows.column("place"), 0)), "tag")
    return StreamSummary(
        table.rank,
        table.worker,
        sum(tags.values()),
        table.path.stat().st_size,
        table.ending,
        _steps(table.rows),
        _range(table.rows, "epoch"),
    )


def _steps(rows: pa.Table) -> tuple[int, int] | None:
    """The first and the last step; an empty one at the end is left out."""
    found = _range(rows, "step")
    if found is not None and _where(rows, "tag", "finish")["gone"].to_pylist() == [True]:
        return found[0], found[1] - 1
    return found


def _range(rows: pa.Table, column: str) -> tuple[int, int] | None:
    found = pc.min_max(rows.column(column)).as_py()
    return None if found["min"] is None else (found["min"], found["max"])


def _by_count(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda entry: (-entry[1], entry[0])))


# --- words --------------------------------------------------------------------------------------


def _ranks(world: int) -> str:
    return "1 rank" if world == 1 else f"{world:,} ranks"


def _stream_lines(summary: TraceSummary) -> list[str]:
    heads = ("stream", "records", "size", "steps", "epochs", "end")
    rows = [heads]
    for stream in summary.streams:
        name = f"rank {stream.rank}"
        if stream.worker is not None:
            name += f" worker {stream.worker}"
        rows.append(
            (
                name,
                f"{stream.records:,}",
                in_words(stream.bytes),
                _span(stream.steps),
                _span(stream.epochs),
                stream.ending.words,
            )
        )
    rows += [
        (ranks_in_words(ranks), "-", "-", "-", "-", "not recorded")
        for ranks in summary.missing_ranks
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(heads))]
    lines = []
    for *cells, end in rows:
        before = "".join(f"{cell.ljust(w)}  " for cell, w in zip(cells, widths, strict=False))
        lines += textwrap.wrap(
            f"{before}{end}", WIDTH, subsequent_indent=" " * len(before), break_on_hyphens=False
        )
    return lines


def _span(ends: tuple[int, int] | None) -> str:
    return "-" if ends is None else f"{ends[0]}-{ends[1]}"


def _counts(counts: Mapping[str, int]) -> Sequence[str]:
    return [f"{name} {count:,}" for name, count in counts.items()]


def _cuts(cut: Mapping[str, ParameterSharding]) -> Iterator[str]:
    """`Shard(0) over tp 12 (0.weight of [16, 8])`: for each kind of cut the number of parameters,
    and the first.
    """
    kinds: dict[tuple[str, ...], list[str]] = {}
    for name, sharding in cut.items():
        kinds.setdefault(sharding.cuts, []).append(name)
    for cuts, names in kinds.items():
        first = f"{names[0]} of {show(cut[names[0]].whole_shape)}"
        yield f"{' and '.join(cuts)} {len(names):,} ({first})"


def _listed(title: str, entries: Iterable[str]) -> list[str]:
    listed = ", ".join(_unbroken(visible(entry)) for entry in entries) or "none"
    wrapped = textwrap.wrap(listed, WIDTH - 2, break_long_words=False, break_on_hyphens=False)
    return ["", f"{title}:", *(f"  {line.replace(NO_BREAK, ' ')}" for line in wrapped)]


def _unbroken(entry: str) -> str:
    """The entry, kept on one line if it fits there, so that a count stands beside its name."""
    return entry.replace(" ", NO_BREAK) if len(entry) < WIDTH - 2 else entry
