"""How recordings end, as a value and in words."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tspec.trace.model import Boundary, Context, Damage, Ending, Finish, missing_ranks
from tspec.trace.read import open_tables, read_trace
from tspec.trace.write import TraceWriter


def record(folder: Path, steps: int = 3, finish: bool = False) -> Path:
    with TraceWriter(folder, 0) as writer:
        for step in range(1, steps + 1):
            writer.add(Boundary(step * 10, Context(step), "step", step))
            writer.flush()
        if finish:
            writer.add(Finish(900, Context(steps)))
    return writer.path


def ending(folder: Path) -> Ending:
    """As read, which is the same from records, tables, and tables of few columns."""
    [stream] = read_trace(folder).streams
    [table] = open_tables(folder).streams
    [narrow] = open_tables(folder, ["seq"]).streams
    assert narrow.rows.column_names == ["seq"]
    assert stream.ending == table.ending == narrow.ending
    return table.ending


def test_a_run_that_finished(tmp_path: Path) -> None:
    record(tmp_path, finish=True)
    assert ending(tmp_path) == Ending("finished", 3)


def test_a_run_that_did_not_finish(tmp_path: Path) -> None:
    record(tmp_path)
    assert ending(tmp_path) == Ending("stopped", 3)


def test_a_process_that_was_killed_between_and_within_batches(tmp_path: Path) -> None:
    path = record(tmp_path / "a")
    data = path.read_bytes()
    path.write_bytes(data[:-8])
    assert ending(tmp_path / "a") == Ending("cut off", 3)
    path.write_bytes(data[:-18])
    found = ending(tmp_path / "a")
    assert (found.how, found.step) == ("torn", 2)
    assert found.torn > 1000


def test_an_empty_file(tmp_path: Path) -> None:
    record(tmp_path).write_bytes(b"")
    assert ending(tmp_path) == Ending("cut off", None)
    shutil.rmtree(tmp_path)
    record(tmp_path, steps=0)
    assert ending(tmp_path) == Ending("stopped", None)


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Ending("finished", 3), "finished"),
        (Ending("stopped", 3), "no normal end"),
        (Ending("limit", 3), "ended at its size limit"),
        (Ending("cut off", 3), "cut off"),
        (Ending("torn", 3, 1234), "cut off, 1,234 bytes torn"),
        (
            Ending("damaged", 3, 0, Damage(4, 20480, 4, "its checksum does not match")),
            "damaged from batch 4 on (byte 20,480, step 4): its checksum does not match",
        ),
    ],
)
def test_words(found: Ending, words: str) -> None:
    assert found.words == words


def test_ranks_that_are_missing_are_ranges_however_many_there_are() -> None:
    assert missing_ranks([], 0) == ()
    assert missing_ranks([1, 0], 2) == ()
    assert missing_ranks([1, 4, 5], 8) == (range(1), range(2, 4), range(6, 8))
    assert missing_ranks([3, 900], 10**9) == (range(3), range(4, 900), range(901, 10**9))
