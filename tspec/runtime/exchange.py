"""One exchange of bytes among all ranks, on a process group of tspec's own.

The group is gloo on the CPU, beside whatever the job uses; it is built from the job's store when all
ranks first come here, and it outlives `destroy_process_group`.
"""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Any

TIMEOUT = "TSPEC_TIMEOUT"
"""Environment variable: how many seconds a rank waits for the others."""
SLOT = 8192
"""Bytes of each rank that travel in the first round; longer ones need a second."""
HEAD = 8


class Broken(Exception):
    """Some rank did not come: it died, or hangs. The message says what was seen."""


class Exchange:
    """The process group, from its first use to the end of the job."""

    def __init__(self) -> None:
        self.timeout = float(os.environ.get(TIMEOUT, "60"))
        self._group: Any = None
        self._world = 1
        self.broken = ""

    def ready(self) -> bool:
        """Whether there are other ranks to meet."""
        if self._group is not None:
            return not self.broken
        import torch.distributed as dist

        if self.broken or not (dist.is_available() and dist.is_initialized()):
            return False
        self._world = dist.get_world_size()
        return self._world > 1

    def gather(self, mine: bytes) -> list[bytes]:
        """What every rank brought, in order of rank. All ranks call it equally often. Raises Broken."""
        try:
            if self._group is None:
                self._group = self._connect()
            return self._rounds(mine)
        except RuntimeError as problem:
            self.broken = str(problem).splitlines()[0]
            raise Broken(self.broken) from problem

    def close(self) -> None:
        """Let go of the group while its threads can still end; one that hangs is left to the process."""
        if not self.broken:
            self._group = None

    def _connect(self) -> Any:
        import torch.distributed as dist
        from torch.distributed import ProcessGroupGloo
        from torch.distributed.distributed_c10d import PrefixStore, _get_default_store

        store = PrefixStore("tspec", _get_default_store())
        waiting = timedelta(seconds=self.timeout)
        return ProcessGroupGloo(store, dist.get_rank(), self._world, waiting)

    def _rounds(self, mine: bytes) -> list[bytes]:
        first = self._all_gather(mine[: SLOT - HEAD], len(mine), SLOT)
        longest = max(length for length, _ in first)
        if longest <= SLOT - HEAD:
            return [found for _, found in first]
        return [found for _, found in self._all_gather(mine, len(mine), longest + HEAD)]

    def _all_gather(self, mine: bytes, length: int, size: int) -> list[tuple[int, bytes]]:
        import torch

        packed = bytearray(length.to_bytes(HEAD, "little") + mine)
        packed += bytes(size - len(packed))
        tensor = torch.frombuffer(packed, dtype=torch.uint8)
        gathered = [torch.empty(size, dtype=torch.uint8, device="cpu") for _ in range(self._world)]
        self._group.allgather([gathered], [tensor]).wait()
        rows = [bytes(row.numpy().tobytes()) for row in gathered]
        lengths = [int.from_bytes(row[:HEAD], "little") for row in rows]
        return [
            (n, row[HEAD : HEAD + min(n, size - HEAD)])
            for n, row in zip(lengths, rows, strict=True)
        ]
