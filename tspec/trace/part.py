"""A part of a recording: the calls of some events and the samples of some kinds, read without the
rest.

A rule that reads nothing else is decided as on the complete recording. Steps and epochs open at the
same instants, and the context at each instant is unchanged, since records that change it are kept.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from tspec.trace.model import Begin, Record, Stream, Trace
from tspec.trace.read import open_tables, records_of

_CONTEXT = ("step", "epoch", "microbatch", "phase")


@dataclass(frozen=True, slots=True)
class TraceSelection:
    """The part of a trace to read: calls of some events, and some fields of the subjects of some kinds."""

    events: Collection[str]
    kinds: Collection[str]
    fields: Collection[str]


def read_part(folder: Path | str, part: TraceSelection) -> Trace:
    """The trace without other calls and without samples of nothing that is read. Raises TraceError."""
    tables = open_tables(folder)
    streams = tuple(
        Stream(table.rank, _records(table.rows, part), table.ending)
        for table in tables.streams
        if table.worker is None
    )
    return Trace(streams, tables.world, tables.meta)


def _records(rows: pa.Table, part: TraceSelection) -> tuple[Record, ...]:
    if not rows.num_rows:
        return ()
    tag, what = rows.column("tag").cast(pa.string()), rows.column("what").cast(pa.string())
    numbers = rows.column("record")
    called = pc.and_(_is_in(tag, ("begin", "end")), _is_in(what, part.events))
    sampled = pc.and_(pc.equal(tag, "sample"), _is_in(what, part.kinds))
    edges = _is_in(tag, ("boundary", "finish"))
    moved = {*_where_context_changes(rows), numbers[0].as_py(), numbers[-1].as_py()}
    kept = {*_samples(rows.filter(sampled), part.fields), *moved}
    of_kept = pc.is_in(numbers, value_set=pa.array(sorted(kept), pa.int64()))
    keep = pc.or_(pc.or_(called, edges), of_kept)
    found = records_of(rows.filter(pc.fill_null(keep, False)))
    parents = _parents(rows, tag)
    begun = {record.call for record in found if isinstance(record, Begin)}
    return tuple(_relinked(record, parents, begun) for record in found)


def _samples(rows: pa.Table, fields: Collection[str]) -> set[int]:
    """The samples with a field that is read, or in which a subject is created or deleted."""
    firsts = rows.group_by(["what", "subject"]).aggregate([("record", "min")])
    read = pc.or_kleene(_is_in(rows.column("field").cast(pa.string()), fields), rows.column("gone"))
    told = rows.column("record").filter(pc.fill_null(read, False))
    return {*firsts.column("record_min").to_pylist(), *pc.unique(told).to_pylist()}


def _is_in(column: pa.ChunkedArray, names: Collection[str]) -> pa.ChunkedArray:
    return pc.is_in(column, value_set=pa.array(sorted(names), pa.string()))


def _where_context_changes(rows: pa.Table) -> set[int]:
    """The records whose context differs from that of the record before."""
    if rows.num_rows < 2:
        return set()
    differs = None
    for name in _CONTEXT:
        column = rows.column(name)
        column = column.cast(pa.string()) if name == "phase" else column
        one = pc.not_equal(column.slice(1), column.slice(0, rows.num_rows - 1))
        differs = one if differs is None else pc.or_(differs, one)
    return set(rows.column("record").slice(1).filter(differs).to_pylist())


def _parents(rows: pa.Table, tag: pa.ChunkedArray) -> Mapping[int, int | None]:
    begins = rows.select(["call", "parent"]).filter(pc.equal(tag, "begin"))
    return dict(
        zip(begins.column("call").to_pylist(), begins.column("parent").to_pylist(), strict=True)
    )


def _relinked(record: Record, parents: Mapping[int, int | None], kept: Collection[int]) -> Record:
    """A call with its parent replaced by the nearest enclosing call that is kept."""
    if not isinstance(record, Begin) or record.parent is None or record.parent in kept:
        return record
    parent: int | None = record.parent
    while parent is not None and parent not in kept:
        parent = parents.get(parent)
    return replace(record, parent=parent)
