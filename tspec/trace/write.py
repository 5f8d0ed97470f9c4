"""Writing a trace: one Arrow stream for each process, in batches that survive the process.

`add` appends plain tuples; all other work waits for `flush`, which the recorder calls once a step
(and before it issues a call that may hang). A batch is given to the operating system as a whole, so
a killed process loses at most the records after its last flush.
"""

from __future__ import annotations

import io
import itertools
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from operator import attrgetter
from pathlib import Path
from typing import Any

import pyarrow as pa

from tspec.trace.batches import END, framed
from tspec.trace.columns import COLUMNS, FEATURES, NAMES, SCHEMA, VALUE
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
from tspec.trace.values import encode, encode_location

_FEATURE_NAMES = tuple(name for name, _ in FEATURES)
_features = attrgetter(*_FEATURE_NAMES)
_NO_FEATURES = (None,) * len(FEATURES)
_NO_VALUE = (None,) * (len(VALUE) - 2 + len(FEATURES))
_TENSOR = ("tensor", None, None, None, None)
_MISSING = {each.value: (each.value, None, None, None, None) for each in Missing}
_WITH_FIELDS = (Sample, Begin, End)
_SHAPE = _FEATURE_NAMES.index("shape")
_INT64 = 2**63
_WIDTH = len(COLUMNS)
_STEP = [name for name, _ in COLUMNS].index("step")
_BEGINNING = SCHEMA.serialize().to_pybytes()
_NO_ROWS = pa.RecordBatch.from_pylist([], SCHEMA).serialize().to_pybytes()
_RESERVE = len(framed(_NO_ROWS, 0, 0)) + len(END)
"""Bytes that the end of a stream needs which has no more room."""

_Cells = tuple[Any, ...]


def stream_name(rank: int, worker: int | None = None) -> str:
    """The file of a rank's stream, or of one of its data-loader workers'."""
    return f"rank-{rank}.arrow" if worker is None else f"rank-{rank}.worker-{worker}.arrow"


class TraceWriter:
    """The stream of one process. Safe to use from several threads; a fork of the process writes
    nothing.

    `room`, if given, returns the number of bytes that may still be written. When a batch does not
    fit, the stream ends before it and is `full`. Raises TraceError if the folder cannot be made or
    written, holds a stream of that name already, or has no room for the beginning of one.
    """

    def __init__(
        self,
        folder: Path | str,
        rank: int,
        worker: int | None = None,
        room: Callable[[], int] | None = None,
    ) -> None:
        self._folder = Path(folder)
        self._worker = worker
        self._room = room
        self.path = self._folder / stream_name(rank, worker)
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._cells: list[Any] = []
        """All cells of the rows that wait, row by row: no container for each, which the garbage collector would visit."""
        self._running: dict[int, str] = {}
        self._names = _new_names()
        self._batches = 0
        self._size = 0
        self._step = 0
        self._trained_to: int | None = None
        """The last step that trained, if the run ended in an empty one."""
        self._open = True
        self.full = False
        """The recording ended because there was no more room."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("xb", buffering=0)
        except FileExistsError as error:
            raise TraceError(
                f"`{self.path}` holds a recording already; choose another folder"
            ) from error
        except OSError as error:
            raise TraceError(f"cannot write `{self.path}`: {error.strerror}") from error
        # Arrow writes part by part into memory; a buffer before it saves most of the calls.
        self._written = io.BytesIO()
        self._buffer = pa.BufferedOutputStream(pa.PythonFile(self._written, "w"), 1 << 20)
        # Measured on 217 rows a step: lz4 in this thread 0.9 ms, zstd 1.6 ms for a seventh less
        # on disk; Arrow's own threads cost more than they save on columns of this size.
        options = pa.ipc.IpcWriteOptions(
            compression="lz4", use_threads=False, emit_dictionary_deltas=True
        )
        self._stream = pa.ipc.new_stream(self._buffer, SCHEMA, options=options)
        with self._ends_if_interrupted():
            self._put(_BEGINNING, 0)

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def step(self) -> int:
        """The step of the last record on disk."""
        return self._step

    def add(self, record: Record) -> None:
        """Take up one record; it is on disk after the next `flush`."""
        self.add_all((record,))

    def add_all(self, records: Iterable[Record]) -> None:
        """Take up several records, in their order."""
        with self._lock:
            if not self._open:
                return
            cells, running = self._cells, self._running
            for record in records:
                event = None
                if isinstance(record, End):
                    event = running.pop(record.call, None)
                elif isinstance(record, Begin):
                    running[record.call] = record.event
                elif isinstance(record, Finish) and record.empty_step:
                    self._trained_to = record.context.step - 1
                _add(cells, record, next(self._numbers), not cells, event)

    def flush(self) -> None:
        """Write what was added as one batch, and hand it to the operating system.

        Raises TraceError if it cannot be written. The stream ends then at the batch before.
        """
        with self._lock:
            if not self._is_ours():
                return
            cells, self._cells = self._cells, []
            if cells:
                with self._ends_if_interrupted():
                    self._stream.write_batch(_batch(cells, self._names))
                    first = cells[_STEP] if self._trained_to is None else self._trained_to
                    if self._put(self._messages(), first):
                        self._step = cells[_STEP - _WIDTH]

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
            if self._is_ours():
                with self._ends_if_interrupted():
                    self._write(END)
                self._shut()

    def _is_ours(self) -> bool:
        """True if this process may write. A fork may not."""
        return self._open and os.getpid() == self._pid

    @contextmanager
    def _ends_if_interrupted(self) -> Iterator[None]:
        """End the stream after a failed or interrupted write, which may have lost names that later batches need."""
        try:
            yield
        except BaseException as error:
            with suppress(OSError):
                self._file.truncate(self._size)
            self._shut()
            if isinstance(error, OSError):
                raise TraceError(f"cannot write `{self.path}`: {error.strerror}") from error
            raise

    def _messages(self) -> bytes:
        """The bytes that Arrow has written into memory since the last call. It writes the schema
        with the first batch.
        """
        self._buffer.flush()
        written = self._written.getvalue()
        self._written.seek(0)
        self._written.truncate()
        return written.removeprefix(_BEGINNING)

    def _put(self, messages: bytes, first: int) -> bool:
        """Write messages as one batch, if there is room. `first` is the step of its first record."""
        data = framed(messages, self._batches, self._size, first)
        fits = self._room is None or len(data) + _RESERVE <= self._room()
        if fits:
            self._write(data)
        else:
            self._end_without_room()
        return fits

    def _end_without_room(self) -> None:
        """End the stream before a batch that does not fit."""
        self.full = True
        if self._batches:
            self._write(framed(_NO_ROWS, self._batches, self._size, self._step, limit=True))
            self._write(END)
        else:
            self.path.unlink()
        self._shut()

    def _write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]
        self._size += len(data)
        self._batches += 1

    def _shut(self) -> None:
        self._open = False
        self._file.close()


def table(records: Iterable[Record]) -> pa.Table:
    """Records as the table that they would be read back as."""
    cells: list[Any] = []
    events: dict[int, str] = {}
    for number, record in enumerate(records):
        if isinstance(record, Begin):
            events[record.call] = record.event
        event = events.get(record.call) if isinstance(record, End) else None
        _add(cells, record, number, False, event)
    if not cells:
        return SCHEMA.empty_table()
    return pa.Table.from_batches([_batch(cells, _new_names())])


def _new_names() -> dict[str, _StringTable]:
    return {name: _StringTable() for name, kind in COLUMNS if kind == NAMES}


def _batch(cells: list[Any], names: Mapping[str, _StringTable]) -> pa.RecordBatch:
    """Rows whose cells lie one after the other, as columns."""
    arrays = []
    for place, (name, kind) in enumerate(COLUMNS):
        column = cells[place::_WIDTH]
        if kind == NAMES:
            arrays.append(names[name].array(column))
        elif column.count(None) == len(column):
            arrays.append(pa.nulls(len(column), kind))
        else:
            arrays.append(pa.array(column, kind))
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


class _StringTable:
    """The strings of one column so far, and the index of each."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._array = pa.array([], pa.string())

    def array(self, cells: list[str | None]) -> pa.DictionaryArray:
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


def _add(cells: list[Any], record: Record, number: int, stamped: bool, event: str | None) -> None:
    """Add the cells of a record's rows; `event` is that of the call which an End ends."""
    head = _head(record, stamped, event)
    fields = record.fields if isinstance(record, _WITH_FIELDS) else None
    if not fields:
        cells += (number, 0, *head, None, None)
        cells += _NO_VALUE
        return
    place = 0
    for name, value in fields.items():
        # Rows are added in pieces: a tuple of a whole row would be made only to be copied.
        if value.__class__ is tuple and _is_flat(value):
            cells += (number, place)
            cells += head
            cells += (name, None, "list", None, len(value), None, None)
            cells += _NO_FEATURES
            for item, element in enumerate(value):
                place += 1
                cells += (number, place)
                cells += head
                cells += (name, item)
                _add_value(cells, element)
        else:
            cells += (number, place)
            cells += head
            cells += (name, None)
            _add_value(cells, value)
        place += 1


def _head(record: Record, stamped: bool, event: str | None) -> _Cells:
    """The cells of `HEAD` after the record's number and place."""
    now = record.context
    when = (record.seq, now.step, now.epoch, now.microbatch, now.phase)
    stamp = time.time_ns() if stamped else None
    if isinstance(record, Sample):
        subject, gone = _text(record.subject), record.gone or None
        who = (record.kind, None, None, None, subject, None, gone, None, stamp, None)
        return ("sample", *when, *who)
    if isinstance(record, Begin):
        at = None if record.location is None else encode_location(record.location)
        called = (record.event, record.call, record.parent, record.callable)
        return ("begin", *when, *called, None, None, None, None, stamp, at)
    if isinstance(record, End):
        ended = (event, record.call, None, None, None, None, None, record.error)
        return ("end", *when, *ended, stamp, None)
    stamp = time.time_ns()
    at = None if record.location is None else encode_location(record.location)
    if isinstance(record, Boundary):
        opened = (record.span, None, None, None, None, record.index, None, None)
        return ("boundary", *when, *opened, stamp, at)
    empty = record.empty_step or None
    return ("finish", *when, None, None, None, None, None, None, empty, None, stamp, at)


def _is_flat(value: tuple[Value, ...]) -> bool:
    """True if a list has a row for each item: it holds a tensor, and no item contains another
    value.
    """
    holds_tensor = False
    for item in value:
        if isinstance(item, Tensor):
            holds_tensor = True
        elif isinstance(item, (tuple, frozenset, Mapping)):
            return False
    return holds_tensor


def _add_value(cells: list[Any], value: Value) -> None:
    """Add the cells of `VALUE` after the field's name and item, and of `FEATURES`."""
    if isinstance(value, Tensor):
        features = _features(value)
        if _fits(features):
            cells += _TENSOR
            cells += features
            return
        cells += ("json", None, None, None, encode(value))
    else:
        cells += _plain_cells(value)
    cells += _NO_FEATURES


def _plain_cells(value: Value) -> _Cells:
    """The value cells of a non-tensor field, without the cells for its name and item."""
    if isinstance(value, Missing):
        return _MISSING[value.value]
    if isinstance(value, Ref) and " " not in value.kind and _is_unicode(value.name):
        return ("ref", None, None, None, f"{value.kind} {value.name}")
    if isinstance(value, bool):
        return ("bool", value, None, None, None)
    if isinstance(value, float):
        return ("float", None, None, value, None)
    if isinstance(value, int) and -_INT64 <= value < _INT64:
        return ("int", None, value, None, None)
    if isinstance(value, str) and _is_unicode(value):
        return ("string", None, None, None, value)
    return ("json", None, None, None, encode(value))


def _fits(features: _Cells) -> bool:
    """True if the typed columns can hold all features: no integer is too long, no name is broken."""
    for feature in features:
        if feature is None:
            continue
        kind = feature.__class__
        if kind is int:
            if not -_INT64 <= feature < _INT64:
                return False
        elif kind is str and not _is_unicode(feature):
            return False
    shape = features[_SHAPE]
    return not shape or (min(shape) >= 0 and max(shape) < _INT64)


def _is_unicode(text: str) -> bool:
    """True if Arrow can hold the text. File names may contain half of a surrogate pair."""
    return text.isascii() or not any("\ud800" <= c <= "\udfff" for c in text)


def _text(name: str) -> str:
    return name if _is_unicode(name) else name.encode("utf-8", "backslashreplace").decode()
