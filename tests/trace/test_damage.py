"""A recording that was changed after it was written: nothing crashes, nothing is silently different."""

from __future__ import annotations

import json
import random
import shutil
import struct
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.record.processes import ROOT, environment, recorded
from tspec.trace.batches import layout
from tspec.trace.model import Ending
from tspec.trace.read import read_trace

Change = Callable[[bytearray, random.Random], None]

SCRIPT = """
import torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(4):
    optimizer.zero_grad()
    model(torch.randn(5, 4)).sum().backward()
    optimizer.step()
"""


class Reader:
    """Processes that read recordings, one after the other: each until it dies."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None

    def read(self, folder: Path, check: bool = False) -> dict[str, Any]:
        """What a process says of a folder, or `died` with its exit status."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.trace.reader"],
                cwd=ROOT,
                env=environment(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps({"folder": str(folder), "check": check}) + "\n")
        process.stdin.flush()
        said = process.stdout.readline()
        if said:
            found: dict[str, Any] = json.loads(said)
            return found
        self.close()
        return {"died": process.returncode}

    def close(self) -> None:
        """End the process, if there is one."""
        process, self._process = self._process, None
        if process is not None:
            process.communicate()


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    held = Reader()
    yield held
    held.close()


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real one, of four steps."""
    folder = tmp_path_factory.mktemp("whole")
    script = folder / "train.py"
    script.write_text(SCRIPT)
    done = recorded(folder / "trace", script)
    assert done.returncode == 0, done.stderr
    return folder / "trace"


@pytest.fixture
def damaged(recording: Path, tmp_path: Path) -> Path:
    """A copy to be damaged."""
    return Path(shutil.copytree(recording, tmp_path / "damaged"))


# --- changes ------------------------------------------------------------------------------------


def flip(data: bytearray, chance: random.Random) -> None:
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def overwrite(data: bytearray, chance: random.Random) -> None:
    size = chance.choice([1, 1, 2, 4, 8, 64, 512])
    at = chance.randrange(len(data))
    fill = chance.choice([b"\0" * size, b"\xff" * size, chance.randbytes(size)])
    data[at : at + size] = fill[: len(data) - at]


def truncate(data: bytearray, chance: random.Random) -> None:
    del data[chance.randrange(len(data)) :]


def swap(data: bytearray, chance: random.Random) -> None:
    size = chance.choice([8, 64, 512, 4096])
    one, other = (chance.randrange(max(1, len(data) // size)) * size for _ in range(2))
    held = data[one : one + size]
    data[one : one + size] = data[other : other + size]
    data[other : other + size] = held


def repeat(data: bytearray, chance: random.Random) -> None:
    at = chance.randrange(len(data))
    size = chance.choice([1, 8, 100, 4096])
    data[at:at] = data[at : at + size]


def changes(seed: int, count: int, kinds: tuple[Change, ...]) -> Iterator[tuple[int, Change]]:
    for number in range(count):
        yield seed + number, kinds[number % len(kinds)]


@pytest.mark.parametrize(
    ("name", "count", "kinds"),
    [
        pytest.param("rank-0.arrow", 240, (flip,), marks=pytest.mark.slow),
        ("rank-0.arrow", 160, (overwrite, truncate, swap, repeat)),
        ("meta.json", 100, (flip,)),
        ("meta.json", 100, (overwrite, truncate, swap, repeat)),
    ],
)
def test_a_change_is_detected_or_harmless(
    recording: Path, damaged: Path, reader: Reader, name: str, count: int, kinds: tuple[Change, ...]
) -> None:
    """What is read is a beginning of what was recorded, and all of it unless the ending says otherwise."""
    whole = reader.read(recording)
    [original] = whole["streams"]
    assert original["how"] == "finished"
    data = (recording / name).read_bytes()
    seen = set()
    for number, (seed, change) in enumerate(changes(1000, count, kinds)):
        held = bytearray(data)
        change(held, random.Random(seed))
        (damaged / name).write_bytes(held)
        found = reader.read(damaged, check=number % 20 == 0)
        place = f"{change.__name__} {seed}: {found}"
        assert found.keys() <= {"error", "streams", "job", "shown"}, place
        if "error" in found:
            assert str(damaged / name) in found["error"], place
            seen.add("error")
            continue
        [stream] = found["streams"]
        assert found["job"] == whole["job"], place
        assert stream["digests"][-1] == original["digests"][stream["records"]], place
        assert stream["words"] in " ".join(found["shown"].split()), place
        if stream["how"] == original["how"]:
            assert stream["digests"] == original["digests"], place
        seen.add(stream["how"])
    assert seen - {"finished"}


def test_a_bit_anywhere_in_a_batch_ends_the_recording_before_it(
    damaged: Path, reader: Reader
) -> None:
    path = damaged / "rank-0.arrow"
    data = path.read_bytes()
    batches = layout(memoryview(data)).batches
    [whole] = read_trace(damaged).streams
    for batch in batches:
        places = {0, 5, 9, 15, batch.length // 2, batch.length - 1}
        for at in sorted(places):
            held = bytearray(data)
            held[batch.offset + at] ^= 0x40
            path.write_bytes(held)
            [stream] = read_trace(damaged).streams
            assert stream.ending is not None
            assert stream.ending.how == "damaged", (batch.number, at)
            assert stream.ending.damage is not None
            assert (stream.ending.damage.batch, stream.ending.damage.offset) == (
                batch.number,
                batch.offset,
            )
            if batch.number and at not in (5,):
                assert stream.ending.damage.step == batch.step
            assert stream.records == whole.records[: len(stream.records)]
            assert bool(stream.records) == (batch.number > 1)
    path.write_bytes(data)


def _offsets(path: Path) -> list[int]:
    return [batch.offset for batch in layout(memoryview(path.read_bytes())).batches]


def ending(folder: Path) -> Ending:
    [stream] = read_trace(folder).streams
    assert stream.ending is not None
    return stream.ending


@pytest.mark.slow
def test_torn_is_told_from_damaged_in_a_recording_that_was_not_closed(damaged: Path) -> None:
    path = damaged / "rank-0.arrow"
    data = path.read_bytes()[:-8]
    last = layout(memoryview(data)).batches[-1]
    for size in range(last.offset + 1, len(data), 211):
        path.write_bytes(data[:size])
        found = ending(damaged)
        assert (found.how, found.torn) == ("torn", size - last.offset)
    for at in range(last.offset, len(data), 211):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x80]) + data[at + 1 :])
        found = ending(damaged)
        assert found.how == "damaged", at
        assert found.damage is not None
        assert found.damage.offset == last.offset


def test_a_batch_that_is_missing_or_comes_twice_is_damage(damaged: Path) -> None:
    path = damaged / "rank-0.arrow"
    data = path.read_bytes()
    one, two, three = _offsets(path)[1:4]
    for held in (data[:one] + data[two:], data[:two] + data[one:]):
        path.write_bytes(held)
        assert ending(damaged).how == "damaged"
    path.write_bytes(data[:one] + data[two:three] + data[one:two] + data[three:])
    assert ending(damaged).how == "damaged"
    path.write_bytes(data + b"x")
    assert ending(damaged).words.endswith("1 bytes follow the end of the recording")


def test_the_words_say_file_batch_byte_and_step(damaged: Path) -> None:
    path = damaged / "rank-0.arrow"
    data = bytearray(path.read_bytes())
    batch = layout(memoryview(data)).batches[4]
    data[batch.end - 30] ^= 1
    path.write_bytes(data)
    assert ending(damaged).words == (
        f"damaged from batch 4 on (byte {batch.offset:,}, step {batch.step}): "
        "its checksum does not match"
    )


# --- what is valid Arrow with a valid checksum and yet no trace ----------------------------------------


@pytest.mark.slow
def test_a_recording_of_format_1_never_crashes(tmp_path: Path, reader: Reader) -> None:
    """It has no checksums: what is changed in it may be read as it is, or refused in words."""
    with tarfile.open(Path(__file__).parent / "formats/1.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    path = tmp_path / "1" / "rank-0.arrow"
    data = path.read_bytes()
    for number, (seed, change) in enumerate(changes(5000, 150, (flip, overwrite, swap))):
        held = bytearray(data)
        change(held, random.Random(seed))
        path.write_bytes(held)
        found = reader.read(tmp_path / "1", check=number % 20 == 0)
        assert not found.keys() & {"died", "fault"}, f"{change.__name__} {seed}: {found}"


@pytest.mark.parametrize("length", [0, 2**31, 2**63])
def test_a_header_of_any_length_is_no_endless_work(tmp_path: Path, length: int) -> None:
    """Made by hand, with a right checksum of its own."""
    import zlib

    fields = struct.pack("<8sIIQQq", b"tspecBAT", 0, 0, 0, length, 0) + bytes(4)
    header = fields + struct.pack("<I", zlib.crc32(fields))
    (tmp_path / "rank-0.arrow").write_bytes(
        b"\xff\xff\xff\xff" + struct.pack("<I", len(header)) + header
    )
    assert ending(tmp_path).step is None
