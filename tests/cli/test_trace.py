"""`tspec trace show` on folders that hold no recording, or a damaged one: each says what is wrong."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tests import warm
from tests.cli.recordings import record_loop, record_ranks
from tspec.trace.batches import layout


def show(folder: Path) -> subprocess.CompletedProcess[str]:
    return warm.run("trace", "show", str(folder))


def foreign_arrow(folder: Path) -> None:
    table = pa.table({"x": [1]})
    with pa.ipc.new_stream(str(folder / "rank-0.arrow"), table.schema) as stream:
        stream.write_table(table)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda folder: None, "no recording in `DIR`: it holds no `rank-*.arrow`"),
        (
            lambda folder: (folder / "train.py").write_text("print()"),
            "no recording in `DIR`: it holds no `rank-*.arrow`",
        ),
        (foreign_arrow, "`DIR/rank-0.arrow` is an Arrow stream, but not of a tspec trace"),
        (
            lambda folder: (folder / "rank-0.arrow").mkdir(),
            "cannot read `DIR/rank-0.arrow`: it is not a file",
        ),
        (
            lambda folder: os.mkfifo(folder / "rank-0.arrow"),
            "cannot read `DIR/rank-0.arrow`: it is not a file",
        ),
        (
            lambda folder: (folder / "rank-0.arrow").symlink_to("nowhere"),
            "cannot read `DIR/rank-0.arrow`: No such file or directory",
        ),
    ],
)
def test_what_is_no_recording(tmp_path: Path, make: Callable[[Path], object], said: str) -> None:
    make(tmp_path)
    done = show(tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"tspec: {said}\n".replace("DIR", str(tmp_path))


@pytest.mark.parametrize(
    ("content", "end"),
    [
        (b"", "cut off"),
        (b"\xff\xff\xff\xff\x30", "cut off, 5 bytes torn"),
        (bytes(4096), "cut off, 4,096 bytes torn"),
        (
            b"Traceback (most recent call last):\n",
            "damaged from batch 0 on (byte 0): it does not begin as a stream of a trace",
        ),
        (
            b"PAR1" + bytes(100),
            "damaged from batch 0 on (byte 0): it does not begin as a stream of a trace",
        ),
    ],
)
def test_a_file_without_a_batch(tmp_path: Path, content: bytes, end: str) -> None:
    (tmp_path / "rank-0.arrow").write_bytes(content)
    done = show(tmp_path)
    assert done.returncode == 0, done.stderr
    _, row = done.stdout.split("\nrank 0  0 ")
    row, _ = row.split("\n\n", 1)
    assert " ".join(row.split()).endswith(f" - - {end}")
    assert max(map(len, done.stdout.splitlines()[1:])) <= 80


def test_a_damaged_rank_is_shown_beside_whole_ones(tmp_path: Path) -> None:
    path = record_ranks(tmp_path / "run", ends={}) / "rank-1.arrow"
    data = bytearray(path.read_bytes())
    batch = layout(memoryview(data)).batches[3]
    data[batch.offset + 1000] ^= 4
    path.write_bytes(data)
    done = show(tmp_path / "run")
    assert done.returncode == 0, done.stderr
    _, first, second = done.stdout.split("\n\n")[1].split("\nrank ")
    assert first.endswith("  finished")
    assert " ".join(second.split()).endswith(
        f" damaged from batch 3 on (byte {batch.offset:,}, step 2): its checksum does not match"
    )


def test_a_damaged_meta_is_said(tmp_path: Path) -> None:
    folder = record_loop(tmp_path / "run")
    path = folder / "meta.json"
    path.write_text(path.read_text().replace('"world": 1', '"world": 3'))
    done = show(folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"tspec: `{path}` is damaged: its checksum does not match\n"


SPEC = """\
edition 2026

module checks

use std.torch

/// Gradients left over from the last step would be added to this one's.
invariant gradients_are_cleared {
  each step
  expect contains optimizer.zero_grad
  else warn
}

test "a good run" {
  trace "run"
  passes gradients_are_cleared
}
"""


@pytest.mark.slow
def test_other_commands_say_that_a_recording_is_damaged(tmp_path: Path) -> None:
    path = record_ranks(tmp_path / "run", ends={}, forgets=0) / "rank-1.arrow"
    data = bytearray(path.read_bytes())
    batch = layout(memoryview(data)).batches[3]
    data[batch.end - 100] ^= 4
    path.write_bytes(data)
    (tmp_path / "checks.tspec").write_text(SPEC)
    damage = f"damaged from batch 3 on (byte {batch.offset:,}, step 2): its checksum does not match"
    for arguments, code in (
        (["why", "gradients_are_cleared", "--specs", "checks.tspec", "--trace", "run"], 0),
        (["test", "checks.tspec"], 1),
        (["check", "checks.tspec", "--trace", "run"], 0),
        (["infer", "run", "-o", "drafts.tspec"], 0),
    ):
        done = warm.run(*arguments, cwd=tmp_path)
        said = " ".join((done.stdout + done.stderr).split())
        assert damage in said, (arguments, said)
        assert done.returncode == code, (arguments, said)


def test_why_says_that_a_recording_is_cut_off(tmp_path: Path) -> None:
    path = record_loop(tmp_path / "run") / "rank-0.arrow"
    (tmp_path / "checks.tspec").write_text(SPEC)
    ask = ("why", "gradients_are_cleared", "--specs", "checks.tspec", "--trace", "run")
    assert "Not read" not in warm.run(*ask, cwd=tmp_path).stdout
    os.truncate(path, path.stat().st_size - 2000)
    said = " ".join(warm.run(*ask, cwd=tmp_path).stdout.split())
    assert "Not read: the recording of rank 0 does not reach the end of the run (cut off" in said
