"""Recordings of earlier formats are read as they were; of later ones, the error says what reads them."""

from __future__ import annotations

import tarfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.trace.bits import bits
from tests.trace.formats.records import batches
from tspec import __version__
from tspec.trace import meta
from tspec.trace.batches import END, framed, layout
from tspec.trace.columns import FORMAT, SCHEMA
from tspec.trace.errors import TraceError
from tspec.trace.meta import write_meta
from tspec.trace.model import Ending, Tensor
from tspec.trace.read import open_tables, read_trace
from tspec.trace.write import TraceWriter

HERE = Path(__file__).parent


def unpacked(number: int, into: Path) -> Path:
    """As written by the last tspec that wrote this format: a rank that finished, and a worker of it."""
    with tarfile.open(HERE / f"formats/{number}.tar.gz") as archive:
        archive.extractall(into, filter="data")
    return into / str(number)


@pytest.fixture
def format_1(tmp_path: Path) -> Path:
    return unpacked(1, tmp_path)


@pytest.mark.parametrize("number", range(1, FORMAT))
def test_earlier_formats_are_read_to_the_bit(number: int, tmp_path: Path) -> None:
    folder = unpacked(number, tmp_path)
    trace = read_trace(folder)
    assert (trace.world, trace.meta) == (2, {"command": "train.py --größe 3", "torch": "2.9.0"})
    rank, worker = trace.streams
    written = [record for batch in batches(0) for record in batch]
    assert bits(rank.records) == bits(tuple(written))
    assert rank.ending == Ending("finished", 3)
    assert bits(worker.records) == bits(tuple(batches(0)[0]))
    assert (worker.worker, worker.ending) == (0, Ending("stopped", 1))
    [table, _] = open_tables(folder, ["step", "location"]).streams
    assert table.rows.column_names == ["step", "location"]
    assert table.rows["location"].null_count == len(table.rows)


def test_format_1_that_is_torn_is_read_up_to_there(format_1: Path) -> None:
    path = format_1 / "rank-0.arrow"
    path.write_bytes(path.read_bytes()[:-6000])
    [stream, _] = read_trace(format_1).streams
    assert bits(stream.records) == bits(tuple(r for batch in batches(0)[:2] for r in batch))
    assert stream.ending is not None
    assert (stream.ending.how, stream.ending.step) == ("torn", 2)


def without_sums(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(without_sums, value))
    return replace(value, sum=None) if isinstance(value, Tensor) else value


def test_a_feature_newer_than_the_recording_is_not_recorded(format_1: Path, tmp_path: Path) -> None:
    (old := tmp_path / "old").mkdir()
    rows = open_tables(format_1).streams[0].rows.drop_columns(["sum"])
    schema = rows.schema.with_metadata({"tspec.trace": "1"})
    with pa.ipc.new_stream(old / "rank-0.arrow", schema) as writer:
        writer.write_table(rows.combine_chunks().cast(schema))
    [stream] = read_trace(old).streams
    found, whole = [
        [value for record in records for value in getattr(record, "fields", {}).values()]
        for records in (stream.records, read_trace(format_1).streams[0].records)
    ]
    assert bits(tuple(found)) == bits(without_sums(tuple(whole))) != bits(tuple(whole))
    [table] = open_tables(old, ["sum", "step"]).streams
    assert table.rows.column_names == ["step", "sum"] and table.rows["sum"].null_count == len(
        table.rows
    )


def test_a_stream_with_columns_of_no_trace_is_refused(format_1: Path, tmp_path: Path) -> None:
    rows = open_tables(format_1).streams[0].rows
    for odd in (rows.drop_columns(["step"]), rows.append_column("more", rows["step"])):
        with pa.ipc.new_stream(tmp_path / "rank-0.arrow", odd.schema) as writer:
            writer.write_table(odd.combine_chunks())
        with pytest.raises(TraceError, match="not of a tspec trace"):
            read_trace(tmp_path)


def test_what_is_written_now_says_its_format_and_version(tmp_path: Path) -> None:
    with TraceWriter(tmp_path, 0) as writer:
        writer.add_all(batches(0)[0])
    schema = pa.ipc.open_stream(writer.path.read_bytes()).schema
    assert schema.metadata == {
        b"tspec.trace": str(FORMAT).encode(),
        b"tspec": __version__.encode(),
    }


def test_any_engine_reads_the_file_as_an_arrow_stream(tmp_path: Path) -> None:
    with TraceWriter(tmp_path, 0) as writer:
        for batch in batches(0):
            writer.add_all(batch)
            writer.flush()
    rows = pa.ipc.open_stream(writer.path.read_bytes()).read_all()
    assert rows.num_rows == open_tables(tmp_path).streams[0].rows.num_rows


def later(folder: Path, with_header: bool, metadata: dict[str, str]) -> None:
    """A stream of a later format, with batch headers as today's or with others."""
    folder.mkdir()
    schema = pa.schema([pa.field("new", pa.int8())], metadata=metadata).serialize().to_pybytes()
    data = framed(schema, 0, 0) if with_header else schema
    (folder / "rank-0.arrow").write_bytes(data + END)


@pytest.mark.parametrize("with_header", [True, False])
def test_a_stream_of_a_later_format_says_which_tspec_reads_it(
    tmp_path: Path, with_header: bool
) -> None:
    later(tmp_path / "a", with_header, {"tspec.trace": "7", "tspec": "3.4.0"})
    with pytest.raises(TraceError) as error:
        read_trace(tmp_path / "a")
    assert str(error.value) == (
        f"`{tmp_path / 'a' / 'rank-0.arrow'}` is of format 7, written by tspec 3.4.0; "
        f"tspec {__version__} reads formats up to {FORMAT}. Read it with tspec 3.4.0 or later"
    )
    later(tmp_path / "b", with_header, {"tspec.trace": "7"})
    with pytest.raises(TraceError, match=r"is of format 7; .* Read it with a later tspec"):
        read_trace(tmp_path / "b")


def test_a_later_meta_says_which_tspec_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with TraceWriter(tmp_path, 0):
        pass
    with monkeypatch.context() as later:
        later.setattr(meta, "FORMAT", FORMAT + 1)
        later.setattr(meta, "__version__", "0.9.0")
        write_meta(tmp_path, 1)
    with pytest.raises(
        TraceError, match=rf"meta.json` is of format {FORMAT + 1}, written by tspec 0.9.0; "
    ):
        read_trace(tmp_path)


def test_a_valid_batch_of_a_foreign_schema_is_refused(tmp_path: Path) -> None:
    data = framed(pa.schema([pa.field("x", pa.int8())]).serialize().to_pybytes(), 0, 0)
    (tmp_path / "rank-0.arrow").write_bytes(data + END)
    with pytest.raises(TraceError, match="is an Arrow stream, but not of a tspec trace"):
        read_trace(tmp_path)


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ({"tag": "start"}, "`tag` is 'start'"),
        ({"step": None}, "`step` is missing in a row"),
        ({"subject": None}, "`subject` is missing in a row"),
        ({"place": 1}, "its first row is not the first of a record"),
        ({"location": "["}, "a location is not readable: JSONDecodeError: "),
        ({"location": '["a", "b"]'}, "a location is not readable: ValueError: it is no location"),
        ({"type": "json", "text": "{"}, "a value is not readable: JSONDecodeError: "),
        ({"type": "json", "text": "[" * 100_000}, "a value is not readable: RecursionError: "),
        ({"type": "json", "text": '{"missing": "lost"}'}, "a value is not readable: ValueError"),
        ({"type": "ref"}, "a field has no value"),
        ({"type": "tuple"}, "`type` is 'tuple'"),
        ({"type": "list", "int": 2**40}, "a list has no length, or more items than"),
        ({"type": "list", "int": None}, "a list has no length, or more items than"),
        ({"type": "list", "int": -1}, "a list has no length, or more items than"),
        ({"tag": "boundary", "what": "week", "index": 1}, "`what` names no span"),
    ],
)
def test_rows_that_no_trace_holds_are_damage(
    tmp_path: Path, cells: dict[str, object], said: str
) -> None:
    """Their checksum is right: a file can be made by hand."""
    row = {
        "record": 0, "place": 0, "tag": "sample", "seq": 1, "step": 4, "epoch": 0, "microbatch": 0,
        "phase": "train", "what": "parameter", "subject": "w", "field": "lr", "type": "float",
        "float": 1.0,
    }  # fmt: skip
    rows = pa.RecordBatch.from_pylist([row | cells], SCHEMA)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA) as stream:
        stream.write_batch(rows)
    whole = sink.getvalue().to_pybytes()
    beginning = SCHEMA.serialize().to_pybytes()
    data = framed(beginning, 0, 0)
    begins = len(data)
    data += framed(whole.removeprefix(beginning).removesuffix(END), 1, len(data), 4)
    (tmp_path / "rank-0.arrow").write_bytes(data + END)
    assert len(layout(memoryview(data)).batches) == 2
    [stream] = read_trace(tmp_path).streams
    assert stream.records == ()
    assert stream.ending is not None
    assert f"damaged from batch 1 on (byte {begins:,}, step 4): {said}" in stream.ending.words
