"""`meta.json` with nonsense in it: each says the file, what is wrong, and costs nothing."""

from __future__ import annotations

import json
import resource
from pathlib import Path

import pytest

from tspec.trace.errors import TraceError
from tspec.trace.meta import Meta, read_meta, write_meta
from tspec.trace.read import read_trace
from tspec.trace.show import summary, text
from tspec.trace.write import TraceWriter

OF_WORLD = "`world` must be an integer from 1 to 1,048,576; it is "


def say(folder: Path, said: object) -> None:
    """As format 1, which has no checksum."""
    data = said if isinstance(said, str) else json.dumps(said)
    (folder / "meta.json").write_text(data)


@pytest.mark.parametrize(
    ("world", "said"),
    [
        (1_000_000_000, "1000000000"),
        (0, "0"),
        (-1, "-1"),
        (2.0, "2.0"),
        ("8", '"8"'),
        (True, "true"),
        (None, "null"),
        ([1], "a list"),
        ({}, "an object"),
        (10**200, "100000000000000000000000000..."),
    ],
)
def test_a_world_that_no_job_has(tmp_path: Path, world: object, said: str) -> None:
    with TraceWriter(tmp_path, 0):
        pass
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    say(tmp_path, {"format": 1, "world": world, "meta": {}})
    with pytest.raises(TraceError) as error:
        summary(tmp_path)
    assert str(error.value) == f"`{tmp_path / 'meta.json'}` is wrong: {OF_WORLD}{said}"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000, "kB"


@pytest.mark.parametrize(
    ("meta", "said"),
    [
        ({"format": 1, "meta": {}}, OF_WORLD + "missing"),
        ({"world": 1, "meta": {}}, "`format` must be an integer from 1 to "),
        ({"format": -3, "world": 1, "meta": {}}, "`format` must be an integer from 1 to "),
        ({"format": 1, "world": 1}, "`meta` must be an object of strings"),
        ({"format": 1, "world": 1, "meta": {"a": 1}}, "`meta` must be an object of strings"),
        ({"format": 1, "world": 1, "meta": [1]}, "`meta` must be an object of strings"),
        ({"format": 2, "world": 1, "meta": {}}, "is damaged: its checksum does not match"),
        (
            {"format": 2, "world": 1, "meta": {}, "crc32": 7},
            "is damaged: its checksum does not match",
        ),
        ([], "is not a trace's: it holds no JSON object"),
        ("7", "is not a trace's: it holds no JSON object"),
        ("", "is damaged: it is not JSON"),
        ("{", "is damaged: it is not JSON"),
        ("[" * 200_000, "is damaged: it is not JSON"),
        ('{"meta":' * 200_000, "is damaged: it is not JSON"),
        ('{"format": 1' + "0" * 5000 + "}", "is damaged: it is not JSON"),
    ],
)
def test_nonsense_is_said(tmp_path: Path, meta: object, said: str) -> None:
    with TraceWriter(tmp_path, 0):
        pass
    say(tmp_path, meta)
    with pytest.raises(TraceError) as error:
        read_trace(tmp_path)
    assert said in str(error.value)
    assert str(tmp_path / "meta.json") in str(error.value)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "meta.json").write_bytes(b'{"format": 1, "world": \xff}')
    with pytest.raises(TraceError, match="is damaged: it is not JSON"):
        read_meta(tmp_path)


def test_what_was_written_is_read(tmp_path: Path) -> None:
    texts = {"command": "train.py --größe\n", "\ud800": "lone"}
    write_meta(tmp_path, 2**20, texts)
    assert read_meta(tmp_path) == Meta(2**20, texts)


def test_the_ranks_of_a_large_world_are_shown_as_ranges(tmp_path: Path) -> None:
    with TraceWriter(tmp_path, 3):
        pass
    write_meta(tmp_path, 2**20)
    shown = text(summary(tmp_path)).splitlines()
    assert shown[0].endswith("1,048,576 ranks")
    assert [line.split("  ")[0] for line in shown[4:6]] == ["ranks 0-2", "ranks 4-1048575"]


def test_a_file_of_a_rank_that_no_job_has(tmp_path: Path) -> None:
    (tmp_path / "rank-99999999999999999999.arrow").write_bytes(b"")
    with pytest.raises(TraceError, match="is of no rank: a job has at most 1,048,576"):
        read_trace(tmp_path)
