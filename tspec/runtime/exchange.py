"""Rounds in which every rank gives something to all others, without waiting unless it is asked to.

The n-th round of each rank is the n-th of every other. A rank takes part when it has something to give
and its round before is over; what it has to give meanwhile goes into the next round together.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tspec.runtime.link import Link

TIMEOUT = "TSPEC_TIMEOUT"
"""Environment variable: how many seconds a rank waits for the others."""
SLOT = 8192
"""Bytes of each rank that travel at once at first; where they are too few, more do from then on."""
MOST = 1 << 20
HEAD = 8
QUEUE = 10_000
"""So many things that wait for the others' next round mean that they never come."""

Round = list[list[Any]]
"""What each rank gave, in order of rank."""


class Broken(Exception):
    """Some rank is gone. The message says what was seen."""


@dataclass(slots=True)
class _Sent:
    """A round under way: of its first part each rank reads how long the longest is."""

    payload: bytes
    size: int
    work: Any
    rows: list[Any]
    whole: bool = False


class Exchange:
    """The rounds of one rank, from the first to the end of the job."""

    def __init__(self) -> None:
        self.timeout = float(os.environ.get(TIMEOUT, "60"))
        self.broken = ""
        self.pending: list[Any] = []
        """What was given and has not yet come back with what others gave."""
        self._queue: list[Any] = []
        self._link: Link | None = None
        self._sent: _Sent | None = None
        self._slot = SLOT

    def ready(self) -> bool:
        """Whether there are other ranks to meet; the first time that there are, connecting begins."""
        if self.broken:
            return False
        if self._link is None:
            import torch.distributed as dist

            if not (dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1):
                return False
            self._link = Link()
        return True

    @property
    def busy(self) -> bool:
        """Something was given that has not come back."""
        return bool(self.pending)

    def give(self, thing: Any) -> None:
        """Give something to all ranks, in this rank's next round. Raises Broken."""
        self.pending.append(thing)
        self._queue.append(thing)
        if len(self._queue) > QUEUE:
            self._break("a rank tells nothing")
        self._begin(0.0)

    def collect(self, patience: float) -> Round | None:
        """The round under way, once all ranks take part; None if that takes longer. Raises Broken."""
        self._begin(patience)
        while self._sent is not None and self._arrived(self._sent, patience):
            found = self._read(self._sent)
            if found is not None:
                self._begin(0.0)
                return found
        return None

    def close(self) -> None:
        """Let go of the group while its threads can still end; one that hangs is left to the process."""
        if self._link is None:
            return
        self._link.close()
        if not self.broken and self._sent is None:
            self._link.group = None

    def _begin(self, patience: float) -> None:
        """Take part in the next round, if there is something to give and the last is over."""
        link = self._link
        if link is None or self._sent is not None or not self._queue:
            return
        if not link.ready(patience):
            if link.failed:
                self._break(link.failed)
            return
        payload = pickle.dumps(self._queue, protocol=5)
        self._queue = []
        self._sent = self._send(payload, self._slot)

    def _send(self, payload: bytes, size: int) -> _Sent:
        import torch

        assert self._link is not None
        packed = bytearray(size)
        head = payload[: size - HEAD]
        packed[:HEAD] = len(payload).to_bytes(HEAD, "little")
        packed[HEAD : HEAD + len(head)] = head
        mine = torch.frombuffer(packed, dtype=torch.uint8)
        rows = [torch.empty(size, dtype=torch.uint8, device="cpu") for _ in range(self._link.world)]
        try:
            work = self._link.group.allgather([rows], [mine])
        except RuntimeError as problem:
            self._break(str(problem))
        return _Sent(payload, size, work, rows)

    def _arrived(self, sent: _Sent, patience: float) -> bool:
        """Whether all ranks take part by now. Raises Broken."""
        try:
            if not sent.work.is_completed():
                if patience <= 0:
                    return False
                sent.work.wait(timedelta(seconds=patience))
            sent.work.wait()
        except RuntimeError as problem:
            if not sent.work.is_completed():
                return False
            self._break(str(problem))
        return True

    def _read(self, sent: _Sent) -> Round | None:
        """What all gave; None where it did not fit, and all of it is sent again."""
        rows = [bytes(row.numpy().tobytes()) for row in sent.rows]
        lengths = [int.from_bytes(row[:HEAD], "little") for row in rows]
        needed = max(lengths) + HEAD
        if needed > sent.size:
            self._slot = min(MOST, max(self._slot, 1 << (needed - 1).bit_length()))
            self._sent = self._send(sent.payload, needed)
            return None
        self._sent = None
        pairs = zip(rows, lengths, strict=True)
        found: Round = [pickle.loads(row[HEAD : HEAD + length]) for row, length in pairs]
        own: Sequence[Any] = pickle.loads(sent.payload)
        del self.pending[: len(own)]
        return found

    def _break(self, why: str) -> None:
        self.broken = why.splitlines()[0] if why else "unknown"
        raise Broken(self.broken)
