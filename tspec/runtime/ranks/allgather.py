"""All-gathers of packets between the ranks, in rounds. A rank waits for a round only if its caller
asks for it.

The n-th round of each rank is the n-th round of every other. A rank takes part when it has a packet
to give and its previous round is over. Packets that come in between go into the next round
together. A thread runs the rounds, so that they continue while the job's own communication waits
for another rank.

A rank is ahead if it has given more packets than another, or has joined (`Packet.joined`) while
others make steps. Its thread then takes part in rounds without a packet, so that no rank waits for
it.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Any, NoReturn

from tspec.runtime.ranks.packets import Packet
from tspec.runtime.ranks.transport import Transport
from tspec.runtime.ranks.wire import decode, encode

TIMEOUT = "TSPEC_TIMEOUT"
"""Environment variable: the number of seconds that a rank waits for the others."""
SLOT = 8192
"""Bytes of each rank that travel at once at first; where they are too few, more do from then on."""
MOST = 1 << 20
HEAD = 8
LEAVING = 20.0
"""Seconds that the thread has to end. It checks every `SLICE`, but the machine may be busy."""
QUEUE = 10_000
"""The number of packets waiting for the next round from which on the other ranks are taken to be
lost.
"""

Round = list[list[Packet]]
"""The packets of each rank, in order of rank."""


@dataclass(frozen=True, slots=True)
class RoundProgress:
    """The progress of each rank, in packets given.

    All ranks compute the same value after the same round.
    """

    counts: tuple[int, ...] = ()
    """The number of packets that each rank gave. A rank that has joined counts as many as the rank
    that gave most.
    """
    joined: frozenset[int] = frozenset()

    def after(self, found: Round) -> RoundProgress:
        """The progress after one more round. If a rank gave several packets, the latest decides
        whether it joined.
        """
        before = self.counts or (0,) * len(found)
        counts = [count + len(given) for count, given in zip(before, found, strict=True)]
        latest = {rank: given[-1].joined for rank, given in enumerate(found) if given}
        joined = frozenset(r for r in range(len(found)) if latest.get(r, r in self.joined))
        most = max(counts)
        return RoundProgress(
            tuple(most if r in joined else c for r, c in enumerate(counts)), joined
        )

    def is_ahead(self, rank: int) -> bool:
        """True if some other rank has given fewer packets than this one."""
        return any(count < self.counts[rank] for count in self.counts)

    def answers(self, rank: int) -> bool:
        """True if the rank takes part in the next round with an empty list of packets."""
        others_go_on = rank in self.joined and len(self.joined) < len(self.counts)
        return others_go_on or self.is_ahead(rank)


class RankLost(Exception):
    """Some rank is lost. The message gives the observation."""


class AllGather:
    """The rounds of one rank, from the first to the end of the job."""

    def __init__(self) -> None:
        self.timeout = float(os.environ.get(TIMEOUT, "60"))
        self.broken = ""
        self.pending: list[Packet] = []
        """Packets that were given and not yet exchanged."""
        self._carrier: _AllGatherThread | None = None
        self._standing = RoundProgress()

    def ready(self) -> bool:
        """True if the process group has other ranks. The first such call starts to connect."""
        if self.broken:
            return False
        if self._carrier is None:
            import torch.distributed as dist

            if not (dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1):
                return False
            self._carrier = _AllGatherThread(Transport())
            self._carrier.start()
        return True

    @property
    def connected(self) -> bool:
        """All ranks have been here at least once."""
        return self._carrier is not None and self._carrier.connected

    @property
    def busy(self) -> bool:
        """A packet was given that has not come back."""
        return bool(self.pending)

    @property
    def ahead(self) -> bool:
        """True if some other rank has given fewer packets than this one."""
        carrier = self._carrier
        return carrier is not None and self._standing.is_ahead(carrier.rank)

    def give(self, packet: Packet) -> None:
        """Give a packet to all ranks, in this rank's next round. Raises RankLost."""
        self.pending.append(packet)
        if len(self.pending) > QUEUE:
            self.lose("a rank tells nothing")
        if self._carrier is not None:
            self._carrier.give(packet)

    def collect(self, patience: float) -> Round | None:
        """The next round that is over; None after a timeout in seconds. Raises RankLost."""
        if self._carrier is None:
            return None
        found = self._carrier.take(patience)
        if isinstance(found, str):
            self.lose(found)
        elif found is not None:
            count, given = found
            del self.pending[:count]
            self._standing = self._standing.after(given)
            return given
        return None

    def part(self, farewell: Packet, patience: float) -> None:
        """Give a packet that this rank ends, and wait until all ranks have given one, up to a
        timeout in seconds.
        """
        until = time.monotonic() + patience
        ended: set[int] = set()
        try:
            while self.connected and not self.broken:
                if not self.busy:
                    self.give(farewell)
                found = self.collect(max(0.0, until - time.monotonic()))
                if found is None:
                    return
                ended |= {
                    rank for rank, given in enumerate(found) if any(p.finished for p in given)
                }
                # A rank that has joined processes packets when it can.
                if len(ended | self._standing.joined) == len(found):
                    return
        except RankLost:
            return

    def close(self) -> None:
        """Let go of the group while its threads can still end."""
        if self._carrier is not None:
            self._carrier.close()

    def lose(self, why: str) -> NoReturn:
        """Some rank is lost: no later wait is for it. Raises RankLost."""
        first = why.splitlines()[0] if why else "unknown"
        # Gloo's message begins with a place in its own source, and ends with advice.
        self.broken = first.rpartition("cc:")[2].partition("] ")[2].partition(". ")[0] or first
        raise RankLost(self.broken)


class _AllGatherThread(threading.Thread):
    """Makes this rank's rounds, one after another."""

    def __init__(self, transport: Transport) -> None:
        super().__init__(name="tspec", daemon=True)
        self._transport = transport
        self.rank = transport.rank
        self.connected = False
        self._group: Any = None
        self._changed = threading.Condition()
        self._given: list[Packet] = []
        self._over: deque[tuple[int, Round]] = deque()
        self._failed = ""
        self._leaves = threading.Event()
        self._slot = SLOT
        self._standing = RoundProgress()

    # on the job's side

    def give(self, packet: Packet) -> None:
        """A packet for the next round."""
        with self._changed:
            self._given.append(packet)
            self._changed.notify_all()

    def take(self, patience: float) -> tuple[int, Round] | str | None:
        """A finished round with the number of packets given in it; the reason if no round will
        follow; None if none is finished yet.
        """
        with self._changed:
            if patience > 0:
                self._changed.wait_for(lambda: self._over or self._failed, patience)
            if self._over:
                return self._over.popleft()
            return self._failed or None

    def close(self) -> None:
        """The job ends: abandon the round that is running."""
        self._leaves.set()
        with self._changed:
            self._changed.notify_all()
        # A thread that comes back from native code while the interpreter ends aborts the process.
        self.join(LEAVING)

    # on the thread

    def run(self) -> None:
        """Connect, then make rounds until the job ends or a rank is lost."""
        try:
            self._group = self._transport.connected(self._leaves)
            self.connected = self._group is not None
            while self._group is not None and (given := self._next()) is not None:
                found = self._round(given)
                if found is None:
                    _never_freed(self._group)
                    return
                self._standing = self._standing.after(found)
                with self._changed:
                    self._over.append((len(given), found))
                    self._changed.notify_all()
        except Exception as problem:  # the job's side reports it
            with self._changed:
                self._failed = str(problem) or type(problem).__name__
                self._changed.notify_all()
        finally:
            self._group = None  # connections close: a rank that waits for this one goes on alone

    def _next(self) -> list[Packet] | None:
        """The packets for the next round, perhaps none; None when the job ends."""
        answers = self._standing.answers(self.rank)
        with self._changed:
            self._changed.wait_for(lambda: self._given or answers or self._leaves.is_set())
            if self._leaves.is_set():
                return None
            given, self._given = self._given, []
            return given

    def _round(self, given: list[Packet]) -> Round | None:
        """The packets of all ranks, gathered in two parts where they do not fit into one; None if
        the job ended meanwhile.
        """
        payload = encode(given)
        rows = self._gathered(payload, self._slot)
        if rows is None:
            return None
        longest = max(length for length, _ in rows)
        if longest > self._slot - HEAD:
            needed, size = longest + HEAD, self._slot
            while size < needed:
                size *= 2
            self._slot = min(MOST, size)
            rows = self._gathered(payload, needed)
        if rows is None:
            return None
        return [
            given if rank == self.rank else decode(row[:length])
            for rank, (length, row) in enumerate(rows)
        ]

    def _gathered(self, payload: bytes, size: int) -> list[tuple[int, bytes]] | None:
        """Length and first bytes of each rank's payload, as many as fit."""
        import torch

        packed = bytearray(size)
        head = payload[: size - HEAD]
        packed[:HEAD] = len(payload).to_bytes(HEAD, "little")
        packed[HEAD : HEAD + len(head)] = head
        whole = self._group.gathered(torch.frombuffer(packed, dtype=torch.uint8), self._leaves)
        if whole is None:
            return None
        texts = [row.numpy().tobytes() for row in whole]
        return [(int.from_bytes(text[:HEAD], "little"), text[HEAD:]) for text in texts]


def _never_freed(group: Any) -> None:
    """Keep a group while one of its collectives runs: freeing it would wait until the other ranks
    are gone.

    The other ranks may wait for this one. Gloo cannot abort a collective, and the interpreter frees
    remaining objects when it ends.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(group))
