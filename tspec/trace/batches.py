"""The file of a stream as batches. A batch is the data of one flush, with a header that holds a checksum.

Batch 0 is the schema; each later one is the Arrow messages of one flush. The file is a plain Arrow IPC
stream, which any engine reads: the header stands at the end of the metadata of a batch's first
message, where Arrow allows padding.

    byte 0          FF FF FF FF
         4          length M of the metadata and the header, 4 bytes
         8          metadata
         8 + M - 48 header
         8 + M      body, further messages

The header has a checksum of its own, so its length can be trusted even if the file is too short.
This distinguishes a batch that was never written to its end (torn) from one that was changed later
(damaged).
"""

from __future__ import annotations

import mmap
import re
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from tspec.trace.model import Damage

END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""Arrow's mark of a stream's end."""
_BEGIN = b"\xff\xff\xff\xff"
_MAGIC = b"tspecBAT"
_FIELDS = struct.Struct("<8sIIQQq")
"""Magic, number, 1 if the recording ends here because of its limit, offset, length, step."""
_SUMS = struct.Struct("<II")
"""CRC-32 of all bytes of the batch but the header's sums; CRC-32 of the header's other bytes."""
_SIZE = _FIELDS.size + _SUMS.size


@dataclass(frozen=True, slots=True)
class FileBatch:
    """One batch of a file. `offset` and `length` are in bytes; `step` is that of its first record.

    If the run ended in an empty step, the last batch has the number of the step before.
    """

    number: int
    offset: int
    length: int
    step: int | None = None
    limit: bool = False
    """The batch is empty: the recording ends here because it reached its size limit."""

    @property
    def end(self) -> int:
        """The offset of the next batch."""
        return self.offset + self.length


@dataclass(frozen=True, slots=True)
class FileLayout:
    """The contents of a file: its complete batches in order, and its ending."""

    batches: tuple[FileBatch, ...]
    closed: bool = False
    """The end's mark follows the last batch, and nothing follows the mark."""
    torn: int = 0
    damage: Damage | None = None


def framed(messages: bytes, number: int, offset: int, step: int = 0, limit: bool = False) -> bytes:
    """A batch as it stands in the file: the messages of one flush, with a header."""
    length = int.from_bytes(messages[4:8], "little")
    before = _BEGIN + (length + _SIZE).to_bytes(4, "little") + messages[8 : 8 + length]
    after = messages[8 + length :]
    fields = _FIELDS.pack(_MAGIC, number, limit, offset, len(messages) + _SIZE, step)
    total = zlib.crc32(after, zlib.crc32(fields, zlib.crc32(before)))
    sums = total.to_bytes(4, "little")
    sums += zlib.crc32(sums, zlib.crc32(fields)).to_bytes(4, "little")
    return b"".join((before, fields, sums, after))


def has_header(data: memoryview) -> bool:
    """True if a file begins with a batch that has a header."""
    return _header(data, 0) is not None


def last_step(data: bytes | mmap.mmap) -> int:
    """The step of the last batch of a file; 0 if there is none. Reads no more than that batch."""
    at = data.rfind(_MAGIC)
    while at >= 0:
        known = _header_at(memoryview(data[at : at + _SIZE]), 0)
        if known is not None:
            return known.step or 0
        at = data.rfind(_MAGIC, 0, at)
    return 0


def layout(data: memoryview) -> FileLayout:
    """The intact batches of a file. Reading ends at the first one that is damaged."""
    found: list[FileBatch] = []
    at = 0
    while at < len(data):
        if data[at : at + len(END)] == END:
            return _after_end(found, data, at)
        known = _header(data, at)
        if known is None or (known.number, known.offset) != (len(found), at) or not known.length:
            return _unreadable(found, data, at)
        if known.end > len(data):
            return FileLayout(tuple(found), torn=len(data) - at)
        if not _is_whole(data, known):
            damage = Damage(known.number, at, _step(known), "its checksum does not match")
            return FileLayout(tuple(found), damage=damage)
        found.append(known)
        at = known.end
    return FileLayout(tuple(found))


def _after_end(found: list[FileBatch], data: memoryview, at: int) -> FileLayout:
    extra = len(data) - at - len(END)
    if not extra:
        return FileLayout(tuple(found), closed=True)
    what = f"{extra:,} bytes follow the end of the recording"
    return FileLayout(tuple(found), damage=Damage(len(found), at, None, what))


def _unreadable(found: list[FileBatch], data: memoryview, at: int) -> FileLayout:
    """The layout of a file without a header at `at`: either the file ends before it, or it was
    changed.
    """
    later = next((each for each in _headers(data, at) if each.offset >= at), None)
    if later is None and _is_beginning(data, at):
        return FileLayout(tuple(found), torn=len(data) - at)
    step = _step(later) if later is not None and later.offset == at else None
    what = "it is overwritten" if at else "it does not begin as a stream of a trace"
    return FileLayout(tuple(found), damage=Damage(len(found), at, step, what))


def _is_beginning(data: memoryview, at: int) -> bool:
    """True if the rest can be the first part of a batch. File systems replace lost data by zeros."""
    rest = data[at:]
    if rest[-len(END) :] == END:
        return False
    if rest[: len(_BEGIN)] != _BEGIN[: len(rest)]:
        return not any(rest)
    return len(rest) < 8 or len(rest) < 8 + int.from_bytes(rest[4:8], "little")


def _header(data: memoryview, at: int) -> FileBatch | None:
    """The header of the batch that begins at a byte, if it is there and whole."""
    if data[at : at + 4] != _BEGIN:
        return None
    return _header_at(data, at + 8 + int.from_bytes(data[at + 4 : at + 8], "little") - _SIZE)


def _header_at(data: memoryview, place: int) -> FileBatch | None:
    held = bytes(data[place : place + _SIZE]) if place >= 0 else b""
    if len(held) < _SIZE or not held.startswith(_MAGIC):
        return None
    _, own = _SUMS.unpack_from(held, _FIELDS.size)
    if own != zlib.crc32(held[:-4]):
        return None
    _, number, limit, offset, length, step = _FIELDS.unpack_from(held)
    return FileBatch(number, offset, length, step, bool(limit))


def _headers(data: memoryview, at: int) -> Iterator[FileBatch]:
    """All headers after a byte, wherever they stand."""
    for match in re.finditer(re.escape(_MAGIC), data[at:]):
        if (known := _header_at(data, at + match.start())) is not None:
            yield known


def _is_whole(data: memoryview, batch: FileBatch) -> bool:
    """True if a batch agrees with its checksum."""
    held = data[batch.offset : batch.end]
    split = 8 + int.from_bytes(held[4:8], "little")
    if split > len(held):
        return False
    sums = split - _SUMS.size
    total, _ = _SUMS.unpack_from(held, sums)
    return bool(zlib.crc32(held[split:], zlib.crc32(held[:sums])) == total)


def _step(batch: FileBatch) -> int | None:
    return batch.step if batch.number else None
