"""Runs each rank of a dry run in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Self

from tspec.preflight.facts import RankFacts, facts_file
from tspec.preflight.objects import PAUSE, end_waits, waiting

CHILD = "tspec.preflight.child"
SHOWN = 20
"""The number of last lines that are shown of a script that ended without a traceback."""


class DryRunFailed(Exception):
    """The script ended with an error, or had no model.

    `said` is its traceback, else its last printed lines.
    """

    def __init__(self, message: str, said: str) -> None:
        super().__init__(message)
        self.said = said


Tensors = Literal["fake", "real"]
"""Fake tensors have shapes and no elements."""


def dry_runs(
    command: Sequence[str], ranks: Sequence[int], world: int, tensors: Tensors = "real"
) -> list[RankFacts]:
    """The facts of some ranks of many in their first step. Raises DryRunFailed.

    The ranks run one after the other. A rank that waits for an object of another one has it run
    beside it.
    """
    with (
        tempfile.TemporaryDirectory(prefix="tspec-preflight-") as folder,
        _Processes(Path(folder), command, world, tensors) as processes,
    ):
        return [processes.facts(rank) for rank in ranks]


class _Processes:
    """The processes of ranks. They leave their facts, their output and their objects in one folder."""

    def __init__(self, folder: Path, command: Sequence[str], world: int, tensors: Tensors) -> None:
        self._folder = folder
        self._command = command
        self._world = world
        self._tensors = tensors
        self._started: dict[int, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """End the ranks that ran for another one's sake only."""
        for process in self._started.values():
            process.kill()
        for process in self._started.values():
            process.wait()

    def facts(self, rank: int) -> RankFacts:
        """Run a rank to the end of its first step."""
        if rank not in self._started:
            self._start(rank)
        while self._started[rank].poll() is None:
            running = [number for number, each in self._started.items() if each.poll() is None]
            waits = waiting(self._folder, running)
            for each in waits:
                self._check(each.source)
            new = {each.source for each in waits if each.source < self._world} - set(self._started)
            for source in new:
                self._start(source)
            if len(waits) == len(running) and not new:
                end_waits(self._folder, waits)
            time.sleep(PAUSE)
        self._check(rank)
        file = facts_file(self._folder, rank)
        if not file.exists():
            why = f"rank {rank} of {self._world} ended before a model was seen"
            raise DryRunFailed(why, self._said(rank))
        return RankFacts.read(file)

    def _start(self, rank: int) -> None:
        arguments = str(self._folder), str(rank), str(self._world), self._tensors
        with self._output(rank).open("wb") as output:
            self._started[rank] = subprocess.Popen(
                [sys.executable, "-m", CHILD, *arguments, *self._command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def _check(self, rank: int) -> None:
        """Raise DryRunFailed if the rank's script failed."""
        status = self._started[rank].poll() if rank in self._started else None
        if status:
            why = f"rank {rank} of {self._world} ended with status {status}"
            raise DryRunFailed(why, self._said(rank))

    def _output(self, rank: int) -> Path:
        return self._folder / f"rank-{rank}.txt"

    def _said(self, rank: int) -> str:
        text = self._output(rank).read_text(encoding="utf-8", errors="replace")
        return _told(text.splitlines())


def _told(lines: Sequence[str]) -> str:
    """All from the first traceback on, since the cause comes first; without one the last lines."""
    first = (number for number, line in enumerate(lines) if line.startswith("Traceback"))
    return "\n".join(lines[next(first, max(len(lines) - SHOWN, 0)) :])
