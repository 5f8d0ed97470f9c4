"""Objects that the ranks of a dry run send to one another, as bytes: files in a folder, because each rank is a process.

A rank that waits for an object writes down whose it is, and whoever started it starts that rank too.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

PAUSE = 0.02
"""Seconds between two looks at the folder."""


@dataclass(frozen=True, slots=True)
class Wait:
    """A rank waits for an object of another one, under its key."""

    rank: int
    source: int
    key: str


class Objects:
    """The objects that one rank sends and receives. Keys are names of files.

    `ends` is called with the name of the rank that does not send what this one waits for.
    """

    def __init__(self, folder: Path, rank: int, ends: Callable[[str], NoReturn]) -> None:
        self._folder = folder
        self._rank = rank
        self._ends = ends

    def send(self, key: str, content: bytes) -> None:
        """Write an object for whoever waits for it."""
        _write(self._folder / key, content)

    def receive(self, key: str, source: int | None) -> bytes:
        """Wait for an object. `source` is the rank that sends it; None if any may."""
        file = self._folder / key
        if source is None:
            self._ends("any rank")
        waits = _waits_of(self._folder, self._rank)
        _write(waits, json.dumps((source, key)).encode())
        while not file.exists():
            if _ends_of(self._folder, self._rank).exists():
                self._ends(f"rank {source}")
            time.sleep(PAUSE)
        waits.unlink()
        return file.read_bytes()


def waiting(folder: Path, ranks: Iterable[int]) -> list[Wait]:
    """Those of the ranks that wait for an object that does not exist yet."""
    said = []
    for rank in ranks:
        try:
            said.append((rank, json.loads(_waits_of(folder, rank).read_text())))
        except FileNotFoundError:
            continue
    # A rank sends before it waits: an object that a waiting rank has sent is seen here.
    found = (Wait(rank, source, key) for rank, (source, key) in said)
    return [each for each in found if not (folder / each.key).exists()]


def end_waits(folder: Path, waits: Iterable[Wait]) -> None:
    """Tell ranks that wait that their objects do not come."""
    for each in waits:
        _ends_of(folder, each.rank).touch()


def _waits_of(folder: Path, rank: int) -> Path:
    return folder / f"rank-{rank}-waits"


def _ends_of(folder: Path, rank: int) -> Path:
    return folder / f"rank-{rank}-ends"


def _write(file: Path, content: bytes) -> None:
    """Write a file that nobody sees before it is whole."""
    part = file.with_name(f"{file.name}.part")
    part.write_bytes(content)
    part.rename(file)
