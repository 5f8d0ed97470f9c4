"""The stream of this process, into which records go. It is opened when the rank is known and
training begins.


A process that only starts others never opens one. A fork begins anew, under its own rank.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path

from tspec.trace.meta import META, write_meta
from tspec.trace.model import Record
from tspec.trace.write import TraceWriter, stream_name

STARTED = "TSPEC_STARTED"
"""The environment variable with the start time of a recording, for all of its processes."""
PASS = 1000
"""Loaders start new workers for each pass: worker 2 of the second pass has the number 1002."""
PATIENCE = 20_000
"""Records that wait in memory for the rank; then the stream is opened under the rank known so far."""


class StreamWriter:
    """Records of one process, in memory first and then on disk."""

    def __init__(self, folder: Path, meta: Mapping[str, str], limit: int | None = None) -> None:
        """`limit` is the number of bytes that all ranks together may use on disk. Each has an equal
        share.
        """
        self.folder = folder
        self.limit = limit
        self.worker: int | None = None
        self._meta = dict(meta)
        self._waiting: list[Record] = []
        self._writer: TraceWriter | None = None
        self._world = 0
        self._rank = 0
        self._ranks = 1

    @property
    def rank(self) -> int:
        """The rank as far as it is known."""
        return self._rank

    @property
    def ranks(self) -> int:
        """The number of ranks that share the limit."""
        return self._ranks

    @property
    def full(self) -> bool:
        """The recording has ended, because there was no more room for a step."""
        return self._writer is not None and self._writer.full

    @property
    def step(self) -> int:
        """The step of the last record on disk."""
        return 0 if self._writer is None else self._writer.step

    @property
    def opened(self) -> bool:
        """Something is on disk."""
        return self._writer is not None

    def add(self, records: Iterable[Record]) -> None:
        """Take up records."""
        if self._writer is None:
            self._waiting.extend(records)
        else:
            self._writer.add_all(tuple(records))

    @property
    def impatient(self) -> bool:
        """True if so many records wait that the stream should be opened now."""
        return self._writer is None and len(self._waiting) > PATIENCE

    def open(self, rank: int, world: int) -> None:
        """Open the file of a rank, or move it to a rank that became known late. Records the number
        of ranks.
        """
        self._ranks = max(self._ranks, world)
        if self._writer is None:
            self._writer = self._begin(rank)
            waiting, self._waiting = self._waiting, []
            self._writer.add_all(waiting)
        elif self.worker is None and self._rank != rank and not self.full:
            self._writer.move(rank)
        self._rank = rank
        self.tell(world)

    def tell(self, world: int) -> None:
        """Write the number of ranks of the job, if it has grown."""
        if self.worker is None and world > self._world:
            self._world = world
            self.folder.mkdir(parents=True, exist_ok=True)
            write_meta(self.folder, world, self._meta)

    def _begin(self, rank: int) -> TraceWriter:
        if self.worker is None and self._is_taken(rank):
            self.worker = os.getpid()
        while self.worker is not None and self._path(rank).exists():
            self.worker += PASS
        room = None if self.limit is None else partial(self._room, self.limit)
        self._rank = rank
        return TraceWriter(self.folder, rank, self.worker, room)

    def _room(self, limit: int) -> int:
        """Bytes that this rank and its workers may still write."""
        mine = f"rank-{self._rank}."
        with os.scandir(self.folder) as entries:
            used = sum(
                entry.stat().st_size
                for entry in entries
                if entry.name.startswith(mine) or entry.name == META
            )
        return limit // self._ranks - used

    def _path(self, rank: int) -> Path:
        return self.folder / stream_name(rank, self.worker)

    def _is_taken(self, rank: int) -> bool:
        """Another process of this same run has the rank's stream: processes that form no group."""
        path = self._path(rank)
        started = os.environ.get(STARTED)
        return path.exists() and started is not None and path.stat().st_mtime >= float(started)

    @property
    def is_bystander(self) -> bool:
        """True if this process opened no stream and others of the job have some: it only started
        them.
        """
        return self._writer is None and any(self.folder.glob("*.arrow"))

    def flush(self) -> None:
        """Hand the added records to the operating system."""
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        """The end of the stream."""
        if self._writer is not None:
            self._writer.close()

    def forget(self, worker: int | None = None) -> None:
        """This process is a forked child: drop the records that the parent had in memory."""
        self._waiting = []
        self._writer = None
        self._world = 0
        self.worker = worker
