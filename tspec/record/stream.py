"""Where records go: the stream of this process, opened when its rank is known and training begins.

A process that only starts others never opens one. A fork begins anew, under its own rank.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from tspec.trace.model import Record
from tspec.trace.write import TraceWriter, stream_name, write_meta

STARTED = "TSPEC_STARTED"
"""The variable that tells the processes of one recording when it began."""
PASS = 1000
"""Loaders start new workers for each pass: worker 2 of the second pass has the number 1002."""
PATIENCE = 20_000
"""Records that wait in memory for the rank; then the stream is opened under the rank known so far."""


class Stream:
    """Records of one process, in memory first and then on disk."""

    def __init__(self, folder: Path, meta: Mapping[str, str]) -> None:
        self.folder = folder
        self.worker: int | None = None
        self._meta = dict(meta)
        self._waiting: list[Record] = []
        self._writer: TraceWriter | None = None
        self._world = 0
        self._rank = 0

    @property
    def opened(self) -> bool:
        """Something is on disk."""
        return self._writer is not None

    def add(self, records: Iterable[Record]) -> None:
        """Take up records."""
        if self._writer is None:
            self._waiting.extend(records)
        else:
            for record in records:
                self._writer.add(record)

    @property
    def impatient(self) -> bool:
        """So much waits that the stream should be opened now."""
        return self._writer is None and len(self._waiting) > PATIENCE

    def open(self, rank: int, world: int) -> None:
        """Begin the file of a rank, or follow a rank that was learnt late. Say how many there are."""
        if self._writer is None:
            self._writer = self._begin(rank)
            waiting, self._waiting = self._waiting, []
            self._writer.add_all(waiting)
        elif self.worker is None and self._rank != rank:
            self._writer.move(rank)
        self._rank = rank
        self.tell(world)

    def tell(self, world: int) -> None:
        """Say how many ranks the job has, where it is news."""
        if self.worker is None and world > self._world:
            self._world = world
            self.folder.mkdir(parents=True, exist_ok=True)
            write_meta(self.folder, world, self._meta)

    def _begin(self, rank: int) -> TraceWriter:
        if self.worker is None and self._is_taken(rank):
            self.worker = os.getpid()
        while self.worker is not None and self._path(rank).exists():
            self.worker += PASS
        return TraceWriter(self.folder, rank, self.worker)

    def _path(self, rank: int) -> Path:
        return self.folder / stream_name(rank, self.worker)

    def _is_taken(self, rank: int) -> bool:
        """Another process of this same run has the rank's stream: processes that form no group."""
        path = self._path(rank)
        started = os.environ.get(STARTED)
        return path.exists() and started is not None and path.stat().st_mtime >= float(started)

    @property
    def is_bystander(self) -> bool:
        """Nothing was opened here, and other processes of the job have streams: this one only started them."""
        return self._writer is None and any(self.folder.glob("*.arrow"))

    def flush(self) -> None:
        """Hand what was added to the operating system."""
        if self._writer is not None:
            self._writer.flush()

    def close(self) -> None:
        """The end of the stream."""
        if self._writer is not None:
            self._writer.close()

    def forget(self, worker: int | None = None) -> None:
        """This is a forked child: what the parent had in memory is the parent's."""
        self._waiting = []
        self._writer = None
        self._world = 0
        self.worker = worker
