"""Reads the file of one stream as rows, which are validated before they are used.

Reads up to the first damaged batch; the ending says where that is.
"""

from __future__ import annotations

import mmap
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from tspec.trace import batches, format_1
from tspec.trace.batches import FileBatch, FileLayout
from tspec.trace.columns import FEATURES, SCHEMA
from tspec.trace.errors import TraceError
from tspec.trace.meta import refuse_newer
from tspec.trace.model import Damage, Ending
from tspec.trace.validate import fault_of

_ADDED = frozenset((*(name for name, _ in FEATURES), "location"))
"""Columns added after the first format. Older recordings lack them."""
_OF_ENDING = ("tag", "step")
"""The columns that show how a recording ends."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a file up to its end, or to where it is torn or damaged."""

    rows: pa.Table
    ending: Ending


def rows_of(path: Path, columns: Collection[str] | None = None) -> Rows:
    """The rows of a stream's file over the mapped file, of the columns named or of all.

    Raises TraceError if it cannot be read, is of a later format, or is no stream of a trace.
    """
    held = _mapped(path)
    found = _layout(path, held)
    read, damage = _read(held, found, columns)
    rows = _together(read)
    if fault_of(rows) is not None:
        read, damage = _up_to_fault(read, found)
        rows = _together(read)
    return Rows(_only(columns, rows), _ending(rows, replace(found, damage=damage)))


def _mapped(path: Path) -> pa.Buffer:
    if path.exists() and not path.is_file():
        raise TraceError(f"cannot read `{path}`: it is not a file")
    try:
        with path.open("rb") as file:
            if not path.stat().st_size:
                return pa.py_buffer(b"")
            return pa.py_buffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise TraceError(f"cannot read `{path}`: {error.strerror}") from error


def _layout(path: Path, held: pa.Buffer) -> FileLayout:
    """The batches of a file, by the format that the file declares."""
    data = memoryview(held).cast("B")
    framed = batches.has_header(data)
    if not framed and _says_format(path, held, _schema(held)) == 1:
        return format_1.layout(held)
    found = batches.layout(data)
    if found.batches:
        _says_format(path, held, _schema(held))
    return found


def _schema(held: pa.Buffer) -> pa.Schema | None:
    try:
        return pa.ipc.open_stream(held).schema
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        return None


def _says_format(path: Path, held: pa.Buffer, schema: pa.Schema | None) -> int | None:
    """The format in a schema that can be read. Raises TraceError for a later one, and for no trace's."""
    if schema is None:
        return None
    said = schema.metadata or {}
    number = said.get(b"tspec.trace", b"")
    if number.isdigit() and len(number) < 10:
        refuse_newer(path, int(number), said.get(b"tspec", b"").decode("utf-8", "replace"))
    if not _is_of_a_trace(schema):
        raise TraceError(f"`{path}` is an Arrow stream, but not of a tspec trace")
    return int(number) if number.isdigit() else None


def _is_of_a_trace(schema: pa.Schema) -> bool:
    """True if the columns are those of a trace. An older recording lacks newer columns."""
    lacking = _ADDED - {*schema.names}
    return bool(schema.equals(pa.schema([each for each in SCHEMA if each.name not in lacking])))


def _read(
    held: pa.Buffer, found: FileLayout, columns: Collection[str] | None
) -> tuple[list[pa.RecordBatch], Damage | None]:
    """The batches of rows before the first that is not valid Arrow, and the damage there."""
    wanted = _with_rows(found)
    if not wanted:
        return [], found.damage
    fields = (
        None
        if columns is None
        else [
            n
            for n, c in enumerate(pa.ipc.open_stream(held).schema.names)
            if c in columns or c in _OF_ENDING
        ]
    )
    options = pa.ipc.IpcReadOptions(included_fields=fields)
    stream = pa.ipc.open_stream(held.slice(0, wanted[-1].end), options=options)
    read: list[pa.RecordBatch] = []
    for batch in wanted:
        try:
            each = stream.read_next_batch()
            each.validate(full=True)
        except (pa.ArrowException, OSError, UnicodeDecodeError, StopIteration) as error:
            fault = str(error).partition("\n")[0] or "it holds no rows"
            return read, _damage(batch, fault)
        read.append(each)
    return read, found.damage


def _up_to_fault(
    read: list[pa.RecordBatch], found: FileLayout
) -> tuple[list[pa.RecordBatch], Damage | None]:
    """The batches before the first with rows that no trace holds, and the damage there."""
    # The readable batches may be fewer than those of the file.
    for place, (rows, batch) in enumerate(zip(read, _with_rows(found), strict=False)):
        if (fault := fault_of(rows)) is not None:
            return read[:place], _damage(batch, fault)
    return read, found.damage


def _with_rows(found: FileLayout) -> list[FileBatch]:
    """All but the schema, and the mark of a limit."""
    return [batch for batch in found.batches[1:] if not batch.limit]


def _together(read: list[pa.RecordBatch]) -> pa.Table:
    """Batches as one table. Their dictionaries grow; the table has one of each."""
    return (
        pa.Table.from_batches(read, schema=read[0].schema).unify_dictionaries()
        if read
        else SCHEMA.empty_table()
    )


def _damage(batch: FileBatch, fault: str) -> Damage:
    return Damage(batch.number, batch.offset, batch.step, fault)


def _only(columns: Collection[str] | None, rows: pa.Table) -> pa.Table:
    """The columns that were asked for. Columns newer than the recording are null."""
    wanted = [name for name in SCHEMA.names if columns is None or name in columns]
    for name in wanted:
        if name not in rows.column_names:
            rows = rows.append_column(
                SCHEMA.field(name), pa.nulls(rows.num_rows, SCHEMA.field(name).type)
            )
    return rows if rows.column_names == wanted else rows.select(wanted)


def _ending(rows: pa.Table, found: FileLayout) -> Ending:
    tag = rows.column("tag")[-1].as_py() if rows.num_rows else None
    step = rows.column("step")[-1].as_py() if rows.num_rows else None
    if found.damage is not None:
        return Ending("damaged", step, damage=found.damage)
    if found.torn:
        return Ending("torn", step, found.torn)
    if tag == "finish":
        return Ending("finished", step)
    if any(batch.limit for batch in found.batches):
        return Ending("limit", step)
    return Ending("stopped" if found.closed else "cut off", step)
