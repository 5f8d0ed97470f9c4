"""Watches the other ranks of a run without an outside observer. A process that waits for a rank
that is gone, or too long, ends itself.

If a scheduler starts the ranks, a rank whose peer was killed waits in a collective until the
timeout of its process group. So each rank holds a lock on a file beside its recording. The system
releases the lock when the process ends, in any way. Each rank checks that the others still hold
theirs.
"""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tspec.equivalence.progress import LOOKED, StallTimer, here, last_records
from tspec.equivalence.recording import is_recorded
from tspec.runtime.messages.say import say

GONE = 3
"""The number of consecutive checks without its lock after which a rank is gone. A file may exist
and not be locked yet, or a recording may not be visible yet.
"""


@dataclass(frozen=True, slots=True)
class Peers:
    """A rank of a run, the folder of all recordings, and the seconds without progress of any rank
    after which the run ends.
    """

    folder: Path
    rank: int
    world: int
    stalled: float


@contextmanager
def watching(peers: Peers, leave: Callable[[Sequence[str]], None] | None = None) -> Iterator[None]:
    """Watch the other ranks within the block.

    `leave` is called with the reason why this process must end, and a line on each rank; by default
    it writes them to stderr and exits with status 1.
    """
    over, began = threading.Event(), time.time()
    with _file(peers.folder, peers.rank).open("w", encoding="utf-8") as held:
        with suppress(OSError):  # a disk without locks: ranks that are gone are not seen
            fcntl.lockf(held, fcntl.LOCK_EX)
        asked = (peers, began, over, leave or _leave)
        thread = threading.Thread(target=_look, args=asked, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def _look(
    peers: Peers, began: float, over: threading.Event, leave: Callable[[Sequence[str]], None]
) -> None:
    """Look at the other ranks until this one is done, or has to end."""
    missed = {rank: 0 for rank in range(peers.world) if rank != peers.rank}
    alive: set[int] = set()
    timer = StallTimer(peers.folder, peers.world, peers.stalled)
    while not over.wait(min(LOOKED, peers.stalled)):
        for rank in missed:
            holds = _is_held(peers.folder, rank)
            if holds:
                alive.add(rank)
            # A file that is older may be of a run before this one, in the same folder.
            ran = rank in alive or _began(peers.folder, rank) >= began
            gone = holds is False and ran and not is_recorded(peers.folder, rank)
            missed[rank] = missed[rank] + 1 if gone else 0
        left = [rank for rank, looks in missed.items() if looks >= GONE]
        if left:
            leave(_said(peers, f"rank {left[0]} ended and recorded nothing"))
            return
        if timer.is_over():
            leave(_said(peers, f"no rank came further for {peers.stalled:g} s"))
            return


def _said(peers: Peers, why: str) -> Sequence[str]:
    """The lines of a rank that ends: the reason, the last record of each rank, and this rank's own
    position.
    """
    lines = [f"rank {peers.rank} ends: {why}"]
    for rank, last in enumerate(last_records(peers.folder, peers.world)):
        at = "recorded nothing" if last is None else f"last at {last.reached}"
        lines.append(f"rank {rank}: {at}{here() if rank == peers.rank else ''}")
    return lines


def _leave(why: Sequence[str]) -> None:
    """End this process, whatever it waits in, and the workers that it started."""
    say(*why)
    for each in multiprocessing.active_children():
        each.kill()
    os._exit(1)


def _is_held(folder: Path, rank: int) -> bool | None:
    """True if the process of a rank lives; None if that is unknown."""
    try:
        with _file(folder, rank).open(encoding="utf-8") as file:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):
        return True
    except OSError:  # it did not begin, or the disk has no locks
        return None
    return False


def _began(folder: Path, rank: int) -> float:
    """The start of a rank in seconds since 1970; 0 if it did not start."""
    file = _file(folder, rank)
    return file.stat().st_mtime if file.exists() else 0.0


def _file(folder: Path, rank: int) -> Path:
    return folder / f"rank-{rank}.alive"
