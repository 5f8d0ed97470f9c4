"""Streams of format 1, which have no checksums: where their batches are.

Damage that leaves valid Arrow is not noticed in them.
"""

from __future__ import annotations

import pyarrow as pa

from tspec.trace.batches import FileBatch, FileLayout


def layout(held: pa.Buffer) -> FileLayout:
    """The longest beginning of a file that is whole batches."""
    source = pa.BufferReader(held)
    messages = pa.ipc.MessageReader.open_stream(source)
    found: list[FileBatch] = []
    whole = 0
    while True:
        try:
            kind = messages.read_next_message().type
        except StopIteration:
            # Either the end-of-stream mark (8 bytes), or simply no more bytes.
            closed = held.size - whole == 8 and source.tell() == held.size
            return FileLayout(tuple(found), closed, 0 if closed else held.size - whole)
        except (pa.ArrowException, OSError):
            return FileLayout(tuple(found), torn=held.size - whole)
        if kind in ("schema", "record batch"):
            found.append(FileBatch(len(found), whole, source.tell() - whole))
            whole = source.tell()
