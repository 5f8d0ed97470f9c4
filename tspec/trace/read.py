"""Reading a trace: all its records as values, or the Arrow tables of its streams for queries.

A stream is read up to its last whole batch, or to the first that is damaged; its ending says which.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa

from tspec.trace.columns import FEATURES
from tspec.trace.errors import TraceError
from tspec.trace.meta import MOST_RANKS, read_meta
from tspec.trace.model import (
    Begin,
    Boundary,
    Context,
    End,
    Ending,
    Finish,
    Location,
    Missing,
    Record,
    Ref,
    Sample,
    Stream,
    Tensor,
    Trace,
    Value,
)
from tspec.trace.rows import rows_of
from tspec.trace.values import decode, decode_location

_STREAM = re.compile(r"rank-(\d+)(?:\.worker-(\d+))?\.arrow")
_MISSING = {reason.value: reason for reason in Missing}
_FEATURE_NAMES = tuple(name for name, _ in FEATURES)


@dataclass(frozen=True, slots=True)
class Table:
    """One stream as an Arrow table of `tspec.trace.columns.SCHEMA`, in order of its records.

    It holds what comes before the end, or before where the file is torn or damaged.
    """

    rank: int
    worker: int | None
    path: Path
    rows: pa.Table
    ending: Ending

    @property
    def torn(self) -> int:
        """Bytes at the tail that are no whole batch."""
        return self.ending.torn

    @property
    def closed(self) -> bool:
        """The recording was ended, not cut off."""
        return self.ending.how in ("finished", "stopped", "limit")


@dataclass(frozen=True, slots=True)
class Tables:
    """A trace as Arrow tables, in order of rank and worker."""

    streams: tuple[Table, ...]
    world: int
    meta: Mapping[str, str]


def read_trace(folder: Path | str) -> Trace:
    """The contents of a folder of streams. Raises TraceError if there is none, or none can be read."""
    tables = open_tables(folder)
    streams = tuple(
        Stream(table.rank, records_of(table.rows), table.ending, table.worker)
        for table in tables.streams
    )
    return Trace(streams, tables.world, tables.meta)


def open_tables(folder: Path | str, columns: Collection[str] | None = None) -> Tables:
    """The streams of a folder as Arrow tables over the mapped files. Raises TraceError as `read_trace`.

    Of the columns only those named are read, which costs as much less as they are fewer.
    """
    folder = Path(folder)
    if not folder.is_dir():
        what = "is a file, not a folder" if folder.exists() else "does not exist"
        raise TraceError(f"no trace at `{folder}`: it {what}")
    found = [(match, path) for path in folder.iterdir() if (match := _STREAM.fullmatch(path.name))]
    if not found:
        raise TraceError(f"no recording in `{folder}`: it holds no `rank-*.arrow`")
    meta = read_meta(folder)
    streams = [
        _table(int(match[1]), int(match[2]) if match[2] else None, path, columns)
        for match, path in found
    ]
    streams.sort(key=lambda table: (table.rank, -1 if table.worker is None else table.worker))
    ranks = max(table.rank for table in streams) + 1
    return Tables(tuple(streams), max(meta.world, ranks), meta.texts)


def _table(rank: int, worker: int | None, path: Path, columns: Collection[str] | None) -> Table:
    if rank >= MOST_RANKS:
        raise TraceError(f"`{path}` is of no rank: a job has at most {MOST_RANKS:,}")
    read = rows_of(path, columns)
    return Table(rank, worker, path, read.rows, read.ending)


# --- records ------------------------------------------------------------------------------------


def records_of(rows: pa.Table) -> tuple[Record, ...]:
    """The records of whole rows, in their order."""
    return tuple(_each_record(rows))


def _each_record(rows: pa.Table) -> Iterator[Record]:
    columns = {name: rows.column(name).to_pylist() for name in rows.column_names}
    starts = [row for row, place in enumerate(columns["place"]) if place == 0]
    for start, end in pairwise([*starts, rows.num_rows]):
        yield _record(columns, start, end)


def _record(columns: Mapping[str, list[Any]], row: int, end: int) -> Record:
    def cell(name: str) -> Any:
        return columns[name][row]

    context = Context(cell("step"), cell("epoch"), cell("microbatch"), cell("phase"))
    seq = cell("seq")
    names, items = columns["field"], columns["item"]
    fields = {
        names[at]: _field(columns, at)
        for at in range(row, end)
        if names[at] is not None and items[at] is None
    }
    tag = cell("tag")
    if tag == "begin":
        return Begin(
            seq,
            context,
            cell("call"),
            cell("parent"),
            cell("what"),
            cell("callable"),
            fields,
            _location(cell),
        )
    if tag == "end":
        return End(seq, context, cell("call"), fields, cell("error"))
    if tag == "sample":
        return Sample(seq, context, cell("what"), cell("subject"), fields, bool(cell("gone")))
    if tag == "boundary":
        return Boundary(seq, context, cell("what"), cell("index"), _location(cell))
    return Finish(seq, context, _location(cell), bool(cell("gone")))


def _location(cell: Callable[[str], Any]) -> Location | None:
    text = cell("location")
    return None if text is None else decode_location(text)


def _field(columns: Mapping[str, list[Any]], row: int) -> Value:
    kind = columns["type"][row]
    if kind == "tensor":
        features = {name: columns[name][row] for name in _FEATURE_NAMES}
        if features["shape"] is not None:
            features["shape"] = tuple(features["shape"])
        return Tensor(**features)
    if kind in ("bool", "int", "float"):
        return columns[kind][row]  # type: ignore[no-any-return]
    if kind in _MISSING:
        return _MISSING[kind]
    if kind == "list":
        return tuple(_field(columns, row + 1 + item) for item in range(columns["int"][row]))
    text = columns["text"][row]
    if kind == "json":
        return decode(text)
    if kind == "ref":
        subject, _, name = text.partition(" ")
        return Ref(subject, name)
    return str(text)
