"""The progress of each rank of a run, in files beside its recording, to find the ranks that wait
for each other.
"""

from __future__ import annotations

import faulthandler
import os
import re
import signal
import sys
import sysconfig
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

LOOKED = 1.0
"""The largest number of seconds between two checks of the ranks' progress."""
LONGEST = 400
"""Bytes of a place; it is written over the one before."""
ANSWER = 1.0
"""Seconds that a process has to write its stack when asked."""
STALLED = 600.0
"""The seconds without progress of any rank after which a run ends. This is also the least limit
until each rank has recorded something.
"""
_FRAME = re.compile(r'File "(?P<file>[^"]*)", line (?P<line>\d+) in (?P<function>\S+)')
_Call = tuple[str, int, str]
"""File, line and function of a frame."""
_INSTALLED = (sysconfig.get_path("stdlib"), str(Path(__file__).resolve().parents[1]))
"""Folders with code that is not the user's: those of Python and of this package."""
_PACKAGES = {"site-packages", "dist-packages"}


class Progress:
    """The file of one rank: its process, and the last place that it reached."""

    def __init__(self, folder: Path, rank: int) -> None:
        self._file = _file(folder, rank)
        self._open: int | None = None

    def reached(self, place: str) -> None:
        """Write where the rank is."""
        if self._open is None:
            self._open = os.open(self._file, os.O_WRONLY | os.O_CREAT, 0o644)
        said = f"{os.getpid()} {place}".encode()[:LONGEST]
        os.pwrite(self._open, said.ljust(LONGEST), 0)

    def close(self) -> None:
        """Close the file."""
        if self._open is not None:
            os.close(self._open)
            self._open = None


@contextmanager
def showing_its_stack(folder: Path, rank: int) -> Iterator[None]:
    """Within the block this process writes its stack when `standing` asks for it, also while it waits in a collective."""
    with _stack(folder, rank).open("w", encoding="utf-8") as file:
        faulthandler.register(signal.SIGUSR1, file, all_threads=False)
        try:
            yield
        finally:
            faulthandler.unregister(signal.SIGUSR1)


def changes(folder: Path, world: int) -> tuple[int, ...]:
    """One number for each rank. It changes whenever the rank makes progress, and is 0 before the rank has recorded anything."""
    files = (_file(folder, rank) for rank in range(world))
    return tuple(file.stat().st_mtime_ns if file.exists() else 0 for file in files)


class StallTimer:
    """Tells when no rank of a run has come further for `stalled` seconds."""

    def __init__(self, folder: Path, world: int, stalled: float) -> None:
        self._of = (folder, world)
        self._stalled = stalled
        self._before, self._since = changes(folder, world), time.monotonic()

    def is_over(self) -> bool:
        """True if no rank has made progress for that long."""
        now = changes(*self._of)
        if now != self._before:
            self._before, self._since = now, time.monotonic()
        limit = self._stalled if all(self._before) else max(self._stalled, STALLED)
        return time.monotonic() - self._since >= limit


@dataclass(frozen=True, slots=True)
class LastRecord:
    """The last record of a process."""

    process: int
    reached: str


def last_records(folder: Path, world: int) -> Iterator[LastRecord | None]:
    """The last record of each rank; None if it has none."""
    for rank in range(world):
        file = _file(folder, rank)
        said = file.read_bytes().decode(errors="replace").rstrip() if file.exists() else ""
        process, _, reached = said.partition(" ")  # empty if the file was made just now
        yield LastRecord(int(process), reached) if process else None


def here() -> str:
    """The innermost line of the user's code in this process's main thread."""
    frame = sys._current_frames().get(threading.main_thread().ident or 0)
    calls = () if frame is None else traceback.walk_stack(frame)
    return _where([(each.f_code.co_filename, line, each.f_code.co_name) for each, line in calls])


def standing(folder: Path, world: int) -> Iterator[tuple[int, str]]:
    """Each rank of a stalled run, with its last record and the current line of its script."""
    found = list(last_records(folder, world))
    for each in found:
        if each is not None:
            _ask(each.process)
    time.sleep(ANSWER)
    for rank, last in enumerate(found):
        if last is None:
            yield rank, "recorded nothing"
        else:
            stack = _stack(folder, rank)
            calls = _calls(stack.read_text(encoding="utf-8")) if stack.exists() else ()
            yield rank, f"last at {last.reached}{_where(calls)}"


def _ask(process: int) -> None:
    try:
        os.kill(process, signal.SIGUSR1)
    except ProcessLookupError:  # it has ended
        return


def _calls(stack: str) -> Sequence[_Call]:
    """The calls of a stack that `faulthandler` wrote."""
    found = _FRAME.finditer(stack)
    return [(each["file"], int(each["line"]), each["function"]) for each in found]


def _where(calls: Sequence[_Call]) -> str:
    """The innermost line of the user's code, and the function that it called. `calls` begin with
    the innermost call.
    """
    for number, (path, line, _) in enumerate(calls):
        file = Path(path)
        is_installed = any(file.is_relative_to(folder) for folder in _INSTALLED)
        if file.is_absolute() and not is_installed and _PACKAGES.isdisjoint(file.parts):
            called = f" in {calls[0][2]}" if number else ""
            return f",{called} at {file.name}:{line}"
    return ""


def _file(folder: Path, rank: int) -> Path:
    return folder / f"rank-{rank}.progress"


def _stack(folder: Path, rank: int) -> Path:
    return folder / f"rank-{rank}.stack"
