"""Writing a trace: one Arrow stream for each process, in batches that survive the process.

`add` appends plain tuples; all else waits for `flush`, which the recorder calls once a step (and
before it issues what may hang). A batch is given to the operating system as a whole, so a process
that is killed loses at most what came after its last flush.
"""

from __future__ import annotations

import itertools
import json
import os
import threading
import time
from collections.abc import Iterable, Mapping
from operator import attrgetter
from pathlib import Path
from typing import Any

import pyarrow as pa

from tspec.trace.columns import COLUMNS, FEATURES, FORMAT, NAMES, SCHEMA, VALUE
from tspec.trace.errors import TraceError
from tspec.trace.model import (
    Begin,
    Boundary,
    End,
    Finish,
    Missing,
    Record,
    Ref,
    Sample,
    Tensor,
    Value,
)
from tspec.trace.values import encode

_FEATURE_NAMES = tuple(name for name, _ in FEATURES)
_features = attrgetter(*_FEATURE_NAMES)
_NO_FEATURES = (None,) * len(FEATURES)
_NO_VALUE = (None,) * len(VALUE) + _NO_FEATURES
_INT64 = 2**63

_Row = tuple[Any, ...]


def stream_name(rank: int, worker: int | None = None) -> str:
    """The file of a rank's stream, or of one of its data-loader workers'."""
    return f"rank-{rank}.arrow" if worker is None else f"rank-{rank}.worker-{worker}.arrow"


def write_meta(folder: Path | str, world: int, meta: Mapping[str, str] | None = None) -> None:
    """Say how many ranks the job has, and what else is known of it, in `meta.json`.

    Any rank may do so, and again when more is known: the file is replaced as a whole.
    """
    said = {"format": FORMAT, "world": world, "meta": dict(meta or {})}
    target = Path(folder) / "meta.json"
    draft = target.with_name(f".meta-{os.getpid()}-{threading.get_ident()}.json")
    try:
        draft.write_text(json.dumps(said, indent=2) + "\n", encoding="utf-8")
        os.replace(draft, target)
    except OSError as error:
        raise TraceError(f"cannot write `{target}`: {error.strerror}") from error


class TraceWriter:
    """The stream of one process. Safe to use from several threads; a fork of the process writes nothing.

    Raises TraceError if the folder cannot be made, or holds a stream of that name already.
    """

    def __init__(self, folder: Path | str, rank: int, worker: int | None = None) -> None:
        self._folder = Path(folder)
        self._worker = worker
        self.path = self._folder / stream_name(rank, worker)
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._rows: list[_Row] = []
        self._running: dict[int, str] = {}
        self._names = _new_names()
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            if self.path.exists():
                raise TraceError(f"`{self.path}` holds a recording already; choose another folder")
            # The stream is written piece by piece; a buffer makes one write of each batch.
            self._file = pa.BufferedOutputStream(pa.OSFile(str(self.path), "wb"), 1 << 20)
        except OSError as error:
            raise TraceError(f"cannot write `{self.path}`: {error}") from error
        # Measured on 217 rows a step: lz4 in this thread 0.9 ms, zstd 1.6 ms for a seventh less
        # on disk; Arrow's own threads cost more than they save on columns of this size.
        options = pa.ipc.IpcWriteOptions(
            compression="lz4", use_threads=False, emit_dictionary_deltas=True
        )
        self._stream = pa.ipc.new_stream(self._file, SCHEMA, options=options)
        self._file.flush()
        self._open = True

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add(self, record: Record) -> None:
        """Take up one record; it is on disk after the next `flush`."""
        with self._lock:
            if isinstance(record, Begin):
                self._running[record.call] = record.event
            event = self._running.pop(record.call, None) if isinstance(record, End) else None
            self._rows.extend(_rows(record, next(self._numbers), not self._rows, event))

    def add_all(self, records: Iterable[Record]) -> None:
        """Take up several records, in their order."""
        for record in records:
            self.add(record)

    def flush(self) -> None:
        """Write what was added as one batch, and hand it to the operating system."""
        with self._lock:
            if not self._open or os.getpid() != self._pid:
                return
            rows, self._rows = self._rows, []
            if rows:
                self._stream.write_batch(_batch(rows, self._names))
                self._file.flush()

    def move(self, rank: int) -> None:
        """The process has learnt its rank: from now on the stream is that rank's."""
        target = self._folder / stream_name(rank, self._worker)
        if target == self.path:
            return
        if target.exists():
            raise TraceError(f"`{target}` holds a recording already; choose another folder")
        os.rename(self.path, target)
        self.path = target

    def close(self) -> None:
        """Flush, and mark the stream as whole. To close twice does nothing."""
        self.flush()
        with self._lock:
            if self._open and os.getpid() == self._pid:
                self._open = False
                self._stream.close()
                self._file.close()


def table(records: Iterable[Record]) -> pa.Table:
    """Records as the table that they would be read back as."""
    rows: list[_Row] = []
    events: dict[int, str] = {}
    for number, record in enumerate(records):
        if isinstance(record, Begin):
            events[record.call] = record.event
        event = events.get(record.call) if isinstance(record, End) else None
        rows += _rows(record, number, False, event)
    if not rows:
        return SCHEMA.empty_table()
    return pa.Table.from_batches([_batch(rows, _new_names())])


def _new_names() -> dict[str, _Names]:
    return {name: _Names() for name, kind in COLUMNS if kind == NAMES}


def _batch(rows: list[_Row], names: Mapping[str, _Names]) -> pa.RecordBatch:
    arrays = []
    for (name, kind), cells in zip(COLUMNS, zip(*rows, strict=True), strict=True):
        if kind == NAMES:
            arrays.append(names[name].array(cells))
        elif cells.count(None) == len(cells):
            arrays.append(pa.nulls(len(cells), kind))
        else:
            arrays.append(pa.array(cells, kind))
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


class _Names:
    """The strings of one column so far, and the place of each."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._array = pa.array([], pa.string())

    def array(self, cells: tuple[str | None, ...]) -> pa.DictionaryArray:
        places = self._places
        for name in dict.fromkeys(cells):
            if name is not None and name not in places:
                places[name] = len(places)
        if len(places) > len(self._array):
            fresh = pa.array(list(itertools.islice(places, len(self._array), None)), pa.string())
            self._array = pa.concat_arrays([self._array, fresh])
        codes = pa.array(map(places.get, cells), pa.int32())  # type: ignore[arg-type]
        # Safe by construction: every code is a place in the array.
        return pa.DictionaryArray.from_arrays(codes, self._array, safe=False)


def _rows(record: Record, number: int, stamped: bool, event: str | None) -> list[_Row]:
    """The rows of a record; `event` is that of the call which an End ends."""
    context = record.context
    when = (record.seq, context.step, context.epoch, context.microbatch, context.phase)
    stamp = time.time_ns() if stamped or isinstance(record, Boundary | Finish) else None
    fields: Mapping[str, Value] = {}
    who: _Row
    match record:
        case Begin():
            who = (
                record.event,
                record.call,
                record.parent,
                record.callable,
                None,
                None,
                None,
                None,
            )
            tag, fields = "begin", record.fields
        case End():
            who = (event, record.call, None, None, None, None, None, record.error)
            tag, fields = "end", record.fields
        case Sample():
            gone = record.gone or None
            who = (record.kind, None, None, None, _text(record.subject), None, gone, None)
            tag, fields = "sample", record.fields
        case Boundary():
            who = (record.span, None, None, None, None, record.index, None, None)
            tag = "boundary"
        case Finish():
            who = (None,) * 8
            tag = "finish"
    if not fields:
        return [(number, 0, tag, *when, *who, stamp, *_NO_VALUE)]
    head = (tag, *when, *who, stamp)
    rows: list[_Row] = []
    for name, value in fields.items():
        if isinstance(value, tuple) and _is_flat(value):
            length = ("list", None, len(value), None, None, *_NO_FEATURES)
            rows.append((number, len(rows), *head, name, None, *length))
            for item, element in enumerate(value):
                rows.append((number, len(rows), *head, name, item, *_cells(element)))
        else:
            rows.append((number, len(rows), *head, name, None, *_cells(value)))
    return rows


def _is_flat(value: tuple[Value, ...]) -> bool:
    """Whether a list has a row for each item: it holds a tensor, and nothing that holds another value."""
    inner = (tuple, frozenset, Mapping)
    return any(isinstance(item, Tensor) for item in value) and not any(
        isinstance(item, inner) for item in value
    )


def _cells(value: Value) -> _Row:
    """The cells of `VALUE` after the field's name and item, and of `FEATURES`."""
    if isinstance(value, Tensor):
        features = _features(value)
        if _fits(features):
            return ("tensor", None, None, None, None, *features)
        return ("json", None, None, None, encode(value), *_NO_FEATURES)
    if isinstance(value, bool):
        return ("bool", value, None, None, None, *_NO_FEATURES)
    if isinstance(value, float):
        return ("float", None, None, value, None, *_NO_FEATURES)
    if isinstance(value, int) and -_INT64 <= value < _INT64:
        return ("int", None, value, None, None, *_NO_FEATURES)
    if isinstance(value, str) and _is_unicode(value):
        return ("string", None, None, None, value, *_NO_FEATURES)
    if isinstance(value, Missing):
        return (value.value, None, None, None, None, *_NO_FEATURES)
    if isinstance(value, Ref) and " " not in value.kind and _is_unicode(value.name):
        return ("ref", None, None, None, f"{value.kind} {value.name}", *_NO_FEATURES)
    return ("json", None, None, None, encode(value), *_NO_FEATURES)


def _fits(features: _Row) -> bool:
    """Whether the typed columns hold all features: no integer is too long, no name is broken."""
    for feature in features:
        if type(feature) is int and not -_INT64 <= feature < _INT64:
            return False
        if type(feature) is str and not _is_unicode(feature):
            return False
    shape = features[_FEATURE_NAMES.index("shape")]
    return shape is None or all(0 <= size < _INT64 for size in shape)


def _is_unicode(text: str) -> bool:
    """Whether Arrow can hold it: file names may have half of a surrogate pair."""
    return text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)


def _text(name: str) -> str:
    return name if _is_unicode(name) else name.encode("utf-8", "backslashreplace").decode()
