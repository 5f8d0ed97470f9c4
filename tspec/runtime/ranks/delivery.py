"""Delivery of the other ranks' findings to the first rank when they end.

Ranks on one machine leave their files in one folder. Ranks on other machines, and ranks without
files, put their findings into a store of tspec's own. The first rank hosts it, and it does not end
with the job's process group.
"""

from __future__ import annotations

import json
import threading
import time
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

from tspec.runtime.ranks.transport import PAUSE, Transport

PIECE = 1 << 20
"""The number of bytes of one value in the store, which takes 8 MiB at most."""
BRIEF = timedelta(seconds=10)
BEGUN = 5.0
"""Seconds that the first rank, at its end, waits for ranks that have not begun to deliver: they
have no hooks, or are gone.
"""


class Delivery:
    """One rank's part in the delivery of files. `place` names the folder of its machine, which
    differs between machines, or the rank.
    """

    def __init__(self, place: str) -> None:
        self.place = place
        self._transport: Transport | None = None
        self._store: Any = None
        self._leaves = threading.Event()
        self._connected = threading.Event()

    def begin(self) -> None:
        """Connect, once the job has its process group, on a thread that does not block the job."""
        if self._transport is not None or not self.place:
            return
        import torch.distributed as dist

        if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
            self._transport = Transport()
            threading.Thread(target=self._connect, name="tspec-delivery", daemon=True).start()

    def _connect(self) -> None:
        assert self._transport is not None
        with suppress(RuntimeError):  # the job's store is closed: reported where it is missed
            store = self._transport.lasting_store(self._leaves)
            if store is not None:
                store.set_timeout(BRIEF)
                store.set(f"place/{self._transport.rank}", self.place)
                self._store = store
        self._connected.set()

    @property
    def has_others(self) -> bool:
        """The job has had other ranks."""
        return self._transport is not None

    @property
    def is_receiver(self) -> bool:
        """True if this rank collects the findings of the others."""
        return self._transport is not None and self._transport.rank == 0

    def give(self, texts: Sequence[str]) -> str:
        """Give texts to the first rank, if it is at another place. Why that could not be done, else nothing."""
        if self._transport is None:
            return ""
        self._connected.wait(BRIEF.total_seconds())
        store, rank = self._store, self._transport.rank
        if store is None:
            return "there is no connection"
        try:
            if store.get("place/0").decode() == self.place:
                return ""
            packed = zlib.compress(json.dumps(list(texts)).encode())
            pieces = [packed[at : at + PIECE] for at in range(0, len(packed), PIECE)]
            for number, piece in enumerate(pieces):
                store.set(f"piece/{rank}/{number}", piece)
            store.set(f"pieces/{rank}", str(len(pieces)))
        except RuntimeError as problem:
            return str(problem).partition("\n")[0]
        return ""

    def take(self, patience: float) -> Iterator[tuple[int, list[str] | None]]:
        """On the first rank: each rank at another place with its texts, None if they do not come in time."""
        assert self._transport is not None
        until = time.monotonic() + patience
        self._connected.wait(patience)
        begun = min(until, time.monotonic() + BEGUN)
        for rank in range(1, self._transport.world):
            try:
                if self._store is None or not self._is_there(f"place/{rank}", begun):
                    yield rank, None
                elif self._store.get(f"place/{rank}").decode() != self.place:
                    yield rank, self._taken(rank, until)
            except RuntimeError:
                yield rank, None

    def takes_part(self, rank: int) -> bool:
        """True if a rank has begun to give. A rank without hooks never does."""
        try:
            return bool(self._store is not None and self._store.check([f"place/{rank}"]))
        except RuntimeError:
            return False

    def _taken(self, rank: int, until: float) -> list[str] | None:
        if not self._is_there(f"pieces/{rank}", until):
            return None
        count = int(self._store.get(f"pieces/{rank}"))
        pieces = [self._store.get(f"piece/{rank}/{number}") for number in range(count)]
        texts: list[str] = json.loads(zlib.decompress(b"".join(pieces)))
        return texts

    def _is_there(self, key: str, until: float) -> bool:
        while not self._store.check([key]):
            if time.monotonic() > until or self._leaves.wait(PAUSE):
                return False
        return True

    def close(self) -> None:
        """Wait for nothing any more."""
        self._leaves.set()
