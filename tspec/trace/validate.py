"""Checks of rows beyond Arrow's own: whether a trace may hold them.

Each check is one query over columns that were read. A batch of format 1 has no checksum, and a file
can be made by hand.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import get_args

import pyarrow as pa
import pyarrow.compute as pc

from tspec.trace.model import LoopSpan, Missing
from tspec.trace.values import decode, decode_location

_TAGS = ("begin", "end", "sample", "boundary", "finish")
_PHASES = ("train", "eval")
_SPANS = get_args(LoopSpan)
_IN_COLUMN = ("bool", "int", "float")
_IN_TEXT = ("string", "json", "ref")
_TYPES = (*_IN_COLUMN, *_IN_TEXT, "tensor", "list", *(reason.value for reason in Missing))
_NEVER_NULL = ("record", "place", "tag", "seq", "step", "epoch", "microbatch", "phase")


def fault_of(rows: pa.RecordBatch | pa.Table) -> str | None:
    """The fault of the rows of one batch or several, or None."""
    for name in _NEVER_NULL:
        if name in rows.schema.names and rows.column(name).null_count:
            return f"`{name}` is missing in a row"
    return (
        _fault_of_names(rows)
        or _fault_of_records(rows)
        or _fault_of_locations(rows)
        or _fault_of_values(rows)
        or _fault_of_lists(rows)
    )


def _fault_of_names(rows: pa.RecordBatch | pa.Table) -> str | None:
    for column, names in (("tag", _TAGS), ("phase", _PHASES), ("type", _TYPES)):
        if column in rows.schema.names:
            for name in pc.unique(_plain(rows, column)).to_pylist():
                if name is not None and name not in names:
                    return f"`{column}` is {name!r}"
    return None


def _fault_of_records(rows: pa.RecordBatch | pa.Table) -> str | None:
    """The fault of rows that begin within a record, or that lack a column of their record's head.
    None without a fault.
    """
    if "place" in rows.schema.names and rows.num_rows and rows.column("place")[0].as_py() != 0:
        return "its first row is not the first of a record"
    needed = (
        ("what", ("begin", "sample", "boundary")),
        ("call", ("begin", "end")),
        ("callable", ("begin",)),
        ("subject", ("sample",)),
        ("index", ("boundary",)),
    )
    tag = _plain(rows, "tag")
    for column, tags in needed:
        if column in rows.schema.names:
            lacking = pc.and_(_among(tag, tags), pc.is_null(rows.column(column)))
            if pc.any(lacking).as_py():
                return f"`{column}` is missing in a row"
    if "what" in rows.schema.names:
        spans = _plain(rows, "what").filter(pc.equal(tag, "boundary"))
        if not pc.all(_among(spans, _SPANS), min_count=0).as_py():
            return "`what` names no span"
    return None


def _fault_of_locations(rows: pa.RecordBatch | pa.Table) -> str | None:
    if "location" not in rows.schema.names:
        return None
    for text in pc.unique(_plain(rows, "location")).to_pylist():
        if text is not None and (why := _why_not(decode_location, text)) is not None:
            return f"a location is not readable: {why}"
    return None


def _fault_of_values(rows: pa.RecordBatch | pa.Table) -> str | None:
    if not {"type", "text"} <= set(rows.schema.names):
        return None
    kind, text = _plain(rows, "type"), rows.column("text")
    held: list[tuple[tuple[str, ...], pa.Array]] = [(_IN_TEXT, text)]
    held += [((n,), rows.column(n)) for n in _IN_COLUMN if n in rows.schema.names]
    for kinds, column in held:
        if pc.any(pc.and_(_among(kind, kinds), pc.is_null(column))).as_py():
            return "a field has no value"
    for encoded in pc.unique(text.filter(_among(kind, ("json",)))).to_pylist():
        if (why := _why_not(decode, encoded)) is not None:
            return f"a value is not readable: {why}"
    return None


def _why_not(read: Callable[[str], object], text: str) -> str | None:
    """Why a text cannot be read, or None."""
    try:
        read(text)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        return f"{type(error).__name__}: {error}"
    return None


def _fault_of_lists(rows: pa.RecordBatch | pa.Table) -> str | None:
    """The fault that a list is followed by fewer rows than it has items. None without a fault."""
    if not {"type", "int", "item", "record"} <= set(rows.schema.names):
        return None
    item = rows.column("item")
    at = pc.indices_nonzero(_among(_plain(rows, "type"), ("list",)))
    length = rows.column("int").take(at)
    last = pc.add(pc.cast(at, pa.int64()), length)
    fits = pc.and_(pc.greater_equal(length, 0), pc.less(last, rows.num_rows))
    if not pc.all(pc.fill_null(fits, False), min_count=0).as_py():
        return "a list has no length, or more items than there are rows"
    # The last item of each list is where it must be, and before each item stands the one before it.
    held = pc.greater(length, 0)
    ends = pc.equal(item.take(last.filter(held)), pc.subtract(length.filter(held), 1))
    rises = pc.equal(item.slice(1), pc.add(item.slice(0, max(rows.num_rows - 1, 0)), 1))
    rises = pc.or_(pc.fill_null(rises, False), pc.fill_null(pc.less_equal(item.slice(1), 0), True))
    if not pc.and_(
        pc.all(pc.fill_null(ends, False), min_count=0), pc.all(rises, min_count=0)
    ).as_py():
        return "the items of a list are not in order"
    return None


def _plain(rows: pa.RecordBatch | pa.Table, column: str) -> pa.Array | pa.ChunkedArray:
    """A column of names as strings."""
    return rows.column(column).cast(pa.string())


def _among(column: pa.Array, names: tuple[str, ...]) -> pa.Array:
    return pc.is_in(column, value_set=pa.array(names, pa.string()))
