"""A process group of tspec's own, connected beside the job without holding it up.

It is gloo on the CPU whatever the job uses, with a store of its own, so that the job's can end and be
set up anew. Ranks come here at different times, and perhaps one while another waits for it in the job's
own communication: so the connecting is done on a thread, that waits until all are here.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

PAUSE = 0.01
"""Seconds between two checks whether all ranks are here."""
ROOT = 0
"""The rank that gathers."""
SLICE = timedelta(seconds=0.2)
"""Time between two checks whether the job has ended."""
NEVER = timedelta(days=10)
"""The timeout of Gloo itself, which must never expire: each wait has its own timeout."""


class GlooGroup:
    """The process group of tspec's own, connected."""

    def __init__(self, group: Any, rank: int, world: int) -> None:
        self._group, self._rank, self._world = group, rank, world

    def gathered(self, mine: torch.Tensor, leaves: threading.Event) -> torch.Tensor | None:
        """The one-dimensional tensors of all ranks, which are of one size, as rows; None if the job ended meanwhile.

        The first rank gathers them and broadcasts all. With Gloo that takes a fifth to a third of the time of its all-gather,
        which goes around a ring (`benchmarks/gathering.py`). Raises RuntimeError if a rank is lost.
        """
        import torch
        from torch._C._distributed_c10d import BroadcastOptions, GatherOptions

        whole = torch.empty(self._world, mine.numel(), dtype=mine.dtype, device="cpu")
        gather, broadcast = GatherOptions(), BroadcastOptions()
        gather.rootRank, broadcast.rootRank, broadcast.rootTensor = ROOT, ROOT, 0
        rows = [list(whole.unbind())] if self._rank == ROOT else []
        if not _comes(self._group.gather(rows, [mine], gather), leaves):
            return None
        return whole if _comes(self._group.broadcast([whole], broadcast), leaves) else None


def _comes(work: Any, leaves: threading.Event) -> bool:
    """Wait for a collective. False if the job ended meanwhile. Raises what the collective raised."""
    while not work.is_completed():
        if leaves.is_set():
            return False
        with suppress(RuntimeError):  # not complete yet, or failed: reported below
            work.wait(SLICE)
    work.wait()
    return True


class Transport:
    """Connects this rank with the others. It is created once the job's own process group exists."""

    def __init__(self) -> None:
        import torch.distributed as dist
        from torch.distributed.distributed_c10d import _get_default_store

        self.rank = dist.get_rank()
        self.world = dist.get_world_size()
        self._store = _own_connection(_get_default_store())

    def connected(self, leaves: threading.Event) -> GlooGroup | None:
        """The group, once all ranks ask for it; None if the job ends before. On a thread of its own."""
        from torch._C._distributed_c10d import PrefixStore, ProcessGroupGloo

        store, self._store = self._store, None
        # Every rank's first group meets the others' first, its second their second.
        number = store.add(f"tspec/rank/{self.rank}", 1)
        names = PrefixStore(f"tspec/{number}", store)
        names.add("here", 1)
        while names.add("here", 0) < self.world:
            if leaves.wait(PAUSE):
                return None
        meeting = self._meeting_place(names, leaves)
        if meeting is None:
            return None
        group = ProcessGroupGloo(meeting, self.rank, self.world, NEVER)
        return GlooGroup(group, self.rank, self.world)

    def lasting_store(self, leaves: threading.Event) -> Any:
        """A store that ends with the first rank and not with the job's process group; None if the job ends before."""
        from torch._C._distributed_c10d import PrefixStore

        store, self._store = self._store, None
        number = store.add(f"tspec/lasting/{self.rank}", 1)
        return self._meeting_place(PrefixStore(f"tspec/lasting/{number}", store), leaves)

    def _meeting_place(self, names: Any, leaves: threading.Event) -> Any:
        """A store of tspec's own on the first rank's machine; the job's where that has no address."""
        from torch._C._distributed_c10d import TCPStore

        host = _host(names)
        if host is None:
            return names
        if self.rank == 0:
            own = TCPStore(host, 0, is_master=True, wait_for_workers=False)
            names.set("port", str(own.port))
            return own
        while not names.check(["port"]):
            if leaves.wait(PAUSE):
                return None
        port = int(names.get("port"))
        until = time.monotonic() + 10
        while True:
            try:
                return TCPStore(host, port, is_master=False, timeout=timedelta(seconds=10))
            except RuntimeError:
                if time.monotonic() > until:
                    raise


def _own_connection(store: Any) -> Any:
    """The same store by another connection: one that waits here would hold up the job's own."""
    try:
        return store.clone()
    except (AttributeError, RuntimeError, NotImplementedError):
        return store


def _host(store: Any) -> str | None:
    """The host of the job's store, if the store has an address."""
    while (inner := getattr(store, "underlying_store", None)) is not None:
        store = inner
    host = getattr(store, "host", None)
    return host if isinstance(host, str) else None
