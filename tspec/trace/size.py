"""The size of a recording, from the ends of its files; nothing else is read."""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from pathlib import Path

from tspec.trace.batches import last_step
from tspec.trace.sizes import in_words


@dataclass(frozen=True, slots=True)
class FolderSize:
    """The size of a recording, and its last step."""

    steps: int
    """The number of steps of the rank that came furthest."""
    ranks: int
    bytes: int
    """The bytes of all files."""

    @property
    def words(self) -> str:
        """`200 steps, 2 ranks, 1.2 MB`."""
        steps = f"{self.steps:,} step{'' if self.steps == 1 else 's'}"
        return (
            f"{steps}, {self.ranks:,} rank{'' if self.ranks == 1 else 's'}, {in_words(self.bytes)}"
        )


def size_of_recording(folder: Path) -> FolderSize:
    """The current size of a recording. A missing folder has size 0."""
    streams = sorted(folder.glob("rank-*.arrow"))
    ranks = {path.name.split(".")[0] for path in streams}
    steps = max((_last_step(path) for path in streams), default=0)
    return FolderSize(
        steps, len(ranks), sum(p.stat().st_size for p in folder.glob("*") if p.is_file())
    )


def _last_step(path: Path) -> int:
    with path.open("rb") as file:
        if not path.stat().st_size:
            return 0
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return last_step(data)
