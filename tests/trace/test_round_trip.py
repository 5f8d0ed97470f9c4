"""What is written is read, to the bit; and of a file that is cut anywhere, a beginning."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trace.bits import bits
from tests.trace.records import records, values
from tspec.trace.batches import layout
from tspec.trace.errors import TraceError
from tspec.trace.meta import write_meta
from tspec.trace.model import Begin, Boundary, Context, Finish, Record, Sample, Tensor
from tspec.trace.read import open_tables, read_trace
from tspec.trace.values import decode, encode
from tspec.trace.write import TraceWriter

batches = st.lists(st.lists(records, max_size=5), max_size=4)


def write(
    folder: Path, groups: list[list[Record]], rank: int = 0, worker: int | None = None
) -> Path:
    with TraceWriter(folder, rank, worker) as writer:
        for group in groups:
            writer.add_all(group)
            writer.flush()
    return writer.path


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(batches)
def test_records_come_back_to_the_bit(groups: list[list[Record]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        write(Path(name), groups)
        [stream] = read_trace(name).streams
        written = tuple(record for group in groups for record in group)
        assert bits(stream.records) == bits(written)
        assert stream.torn == 0


@settings(max_examples=200, deadline=None)
@given(values)
def test_values_come_back_from_text(value: object) -> None:
    assert bits(decode(encode(value))) == bits(value)  # type: ignore[arg-type]


def three_batches() -> list[list[Record]]:
    groups: list[list[Record]] = []
    for step in (1, 2, 3):
        context = Context(step)
        weight = Tensor(digest=step, norm=0.5, shape=(2, 2), dtype="float32")
        groups.append(
            [
                Boundary(step * 10, context, "step", step),
                Begin(step * 10 + 1, context, step, None, f"event{step}", "f", {"lr": 0.1}),
                Sample(step * 10 + 2, context, "parameter", f"w{step}", {"data": weight}),
            ]
        )
    return groups


@pytest.mark.slow
def test_a_file_cut_at_any_byte_gives_the_batches_before(tmp_path: Path) -> None:
    groups = three_batches()
    written = [record for group in groups for record in group]
    data = write(tmp_path / "whole", groups).read_bytes()
    batches = layout(memoryview(data)).batches
    ends = [0, *(batch.end for batch in batches), len(data)]
    assert len(ends) == 6, "nothing, the schema, three batches, the end"
    cut = tmp_path / "cut" / "rank-0.arrow"
    cut.parent.mkdir()
    near = {end + by for end in ends for by in (-9, -8, -1, 0, 1, 4, 8, 9)}
    for size in sorted(near.union(range(0, len(data), 97)) & set(range(len(data) + 1))):
        cut.write_bytes(data[:size])
        [table] = open_tables(cut.parent).streams
        [stream] = read_trace(cut.parent).streams
        whole = sum(batch.end <= size for batch in batches)
        assert list(stream.records) == written[: 3 * max(0, whole - 1)]
        end = max(each for each in ends if each <= size)
        assert stream.torn == table.torn == size - end
        assert table.closed == (size == len(data))
        assert stream.ending is not None
        assert stream.ending.damage is None


def test_a_tail_of_zeros_is_torn(tmp_path: Path) -> None:
    path = write(tmp_path, three_batches())
    whole = path.stat().st_size
    os.truncate(path, whole - 8 + 64)
    with path.open("r+b") as file:
        file.seek(whole - 8)
        file.write(bytes(72))
    [stream] = read_trace(tmp_path).streams
    assert len(stream.records) == 9
    assert stream.torn == 72


def test_ranks_workers_and_world(tmp_path: Path) -> None:
    done: list[list[Record]] = [[Finish(0, Context(), empty_step=True)]]
    write(tmp_path, done, rank=2)
    write(tmp_path, done, rank=0, worker=1)
    write(tmp_path, done, rank=0)
    assert read_trace(tmp_path).world == 3
    write_meta(tmp_path, 4, {"script": "train.py"})
    trace = read_trace(tmp_path)
    assert [(s.rank, s.worker) for s in trace.streams] == [(0, None), (0, 1), (2, None)]
    assert (trace.world, trace.meta) == (4, {"script": "train.py"})
    assert all(stream.records == (done[0][0],) for stream in trace.streams)
    assert trace.stream(1) is None
    assert trace.stream(2) is not None


def test_a_process_that_learns_its_rank_moves_its_stream(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path, 0)
    writer.add(Boundary(0, Context(1), "step", 1))
    writer.flush()
    writer.move(3)
    writer.add(Finish(1, Context(1)))
    writer.close()
    [stream] = read_trace(tmp_path).streams
    assert (stream.rank, len(stream.records)) == (3, 2)


def test_a_fork_writes_nothing(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path, 0)
    writer.add(Boundary(0, Context(1), "step", 1))
    child = os.fork()
    if child == 0:
        writer.add(Finish(1, Context(1)))
        writer.close()
        os._exit(0)
    os.waitpid(child, 0)
    writer.close()
    [stream] = read_trace(tmp_path).streams
    assert len(stream.records) == 1


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda folder: None, "does not exist"),
        (lambda folder: folder.mkdir(), "holds no `rank-*.arrow`"),
        (lambda folder: folder.write_text("x"), "is a file, not a folder"),
        (lambda folder: (write(folder, []), (folder / "meta.json").write_text("[]")), "meta.json"),
        (
            lambda folder: (
                write(folder, []),
                (folder / "meta.json").write_text('{"format": 9, "world": 1, "meta": {}}'),
            ),
            "format 9",
        ),
    ],
)
def test_what_is_no_trace_says_why(tmp_path: Path, make: object, said: str) -> None:
    make(tmp_path / "run")  # type: ignore[operator]
    with pytest.raises(TraceError, match=said.replace("*", r"\*")):
        read_trace(tmp_path / "run")


def test_another_arrow_stream_is_refused(tmp_path: Path) -> None:
    table = pa.table({"x": [1]})
    with pa.ipc.new_stream(str(tmp_path / "rank-0.arrow"), table.schema) as stream:
        stream.write_table(table)
    with pytest.raises(TraceError, match="not of a tspec trace"):
        read_trace(tmp_path)


def test_a_recording_is_not_overwritten(tmp_path: Path) -> None:
    write(tmp_path, [])
    with pytest.raises(TraceError, match="choose another folder"):
        TraceWriter(tmp_path, 0)
