"""The processes of a side: one, or as many ranks as torchrun starts on this machine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tspec.equivalence.child import Given
from tspec.equivalence.progress import LOOKED, STALLED, StallTimer, standing
from tspec.equivalence.recording import Recording, is_recorded, read

CHILD = "tspec.equivalence.child"
TOLD = 30
"""The number of last lines that are shown of a failed run."""
GRACE = 10.0
"""Seconds that processes have to end after they were asked to."""


class Failed(Exception):
    """A run ended with an error, or recorded nothing. `said` are lines that it printed."""

    def __init__(self, message: str, said: str) -> None:
        super().__init__(message)
        self.said = said


@dataclass(frozen=True, slots=True)
class SideRun:
    """One run of a side: the instructions for its processes, and the number of ranks. Its recording
    has its name.
    """

    name: str
    given: Given
    world: int


def launch(run: SideRun, folder: Path, stalled: float = STALLED) -> Path:
    """Run a command on its ranks, and return the folder with the recording of each rank.

    The output of the processes goes to a file beside the folder. Raises Failed, also if no rank
    makes progress for `stalled` seconds.
    """
    arguments = prepared(run, folder)
    log = folder / f"{run.name}.log"
    with log.open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, *_launcher(run.world), *arguments],
            env=os.environ | (_ALONE if run.world == 1 else {}),
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        status = _status(process, folder / run.name, run.world, stalled)
    except BaseException:
        _end(process)
        raise
    if status is None:
        stands = "\n".join(_stands(folder / run.name, run.world))
        printed = _told(log)  # torchrun says more when it is ended
        _end(process)
        why = f"the run `{run.name}` was ended: no rank came further for {stalled:g} s"
        raise Failed(why, f"{stands}\n{printed}".rstrip())
    if status:
        raise Failed(f"the run `{run.name}` ended with status {status}", _told(log))
    silent = [rank for rank in range(run.world) if not is_recorded(folder / run.name, rank)]
    if silent:
        ranks = ", ".join(map(str, silent))
        raise Failed(f"the run `{run.name}` recorded nothing on rank {ranks}", _told(log))
    return folder / run.name


def prepared(run: SideRun, folder: Path) -> tuple[str, ...]:
    """Write the instructions for the processes of a run; return the module that each starts, with
    its arguments. Raises Failed.
    """
    place, file = folder / run.name, folder / f"{run.name}.json"
    if place.exists():
        raise Failed(f"{place} is there already: remove it to run `{run.name}` again", "")
    place.mkdir()
    run.given.write(file)
    return CHILD, str(place), str(file)


def recorded(run: SideRun, folder: Path, begins_alike: bool = True) -> list[Recording]:
    """The recordings of a run's ranks. Raises Failed if some are missing, or belong to another run.

    With `begins_alike` it must have begun with weights of the same seed.
    """
    place, file = folder / run.name, folder / f"{run.name}.json"
    silent = [rank for rank in range(run.world) if not is_recorded(place, rank)]
    if silent:
        ranks = ", ".join(map(str, silent))
        raise Failed(f"{place} has no recording of rank {ranks}: run `{run.name}` first", "")
    if not (file.exists() and run.given.has_orders_of(file, begins_alike)):
        raise Failed(
            f"{place} was recorded with other steps, seed, real sizes or kinds of tensors", ""
        )
    return [read(place, rank) for rank in range(run.world)]


_ALONE = {
    "RANK": "0",
    "WORLD_SIZE": "1",
    "LOCAL_RANK": "0",
    "LOCAL_WORLD_SIZE": "1",
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "0",
}
"""The variables that torchrun sets; port 0 stands for a free one."""


def _launcher(world: int) -> list[str]:
    if world == 1:
        return ["-m"]
    return ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={world}", "-m"]


def _status(
    process: subprocess.Popen[bytes], place: Path, world: int, stalled: float
) -> int | None:
    """The exit status of a process; None if no rank made progress for `stalled` seconds."""
    timer = StallTimer(place, world, stalled)
    while not timer.is_over():
        try:
            return process.wait(min(LOOKED, stalled))
        except subprocess.TimeoutExpired:
            continue
    return None


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process and all that it started."""
    os.killpg(process.pid, signal.SIGTERM)
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _stands(place: Path, world: int) -> Iterator[str]:
    """The position of each rank in a run whose ranks wait for each other."""
    for rank, at in standing(place, world):
        yield f"  rank {rank}: {at}"


def _told(log: Path) -> str:
    """The output of a failed run: from its first traceback on, before torchrun's own; else the last
    lines. Of a long traceback the first calls are left out.
    """
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    first = (number for number, line in enumerate(lines) if "Traceback" in line)
    start = next(first, max(len(lines) - TOLD, 0))
    left_out = _lines_of_traceback(lines[start:]) - TOLD
    if left_out > 0:
        kept = lines[start + 1 + left_out : start + TOLD + left_out]
        return "\n".join([lines[start], f"  … {left_out} more lines", *kept])
    return "\n".join(lines[start : start + TOLD])


def _lines_of_traceback(lines: Sequence[str]) -> int:
    """The number of lines of a traceback, to that of its exception. torchrun puts the rank before each."""
    if not lines or "Traceback" not in lines[0]:
        return 0
    prefix = lines[0].partition("Traceback")[0]
    ends = (
        number
        for number, line in enumerate(lines)
        if number and line.startswith(prefix) and not line[len(prefix) :].startswith(" ")
    )
    return next(ends, len(lines) - 1) + 1
