"""How long commands take: several in turn, so that what else the machine does falls on all of them alike."""

import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable
TSPEC = [PYTHON, "-m", "tspec"]
DIGITS = ROOT / "docs/demo/digits.py"
CHARGPT = ROOT / "docs/demo/chargpt.py"

M = TypeVar("M")
"""What is measured of a command."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one run took, in seconds."""

    wall: float
    cpu: float

    def __sub__(self, other: "Cost") -> "Cost":
        """What was taken since `other`."""
        return Cost(self.wall - other.wall, self.cpu - other.cpu)


@dataclass(frozen=True, slots=True)
class Command:
    """A command line, and what is to be done before each run of it (not timed)."""

    arguments: Sequence[str]
    before: Callable[[], None] | None = None
    statuses: tuple[int, ...] = (0,)
    """Exit statuses that mean that it did its work."""
    folder: Path = ROOT
    """Where it runs."""
    paces: str = r"epoch|step"
    """How the lines begin at which `marks` reads the clocks."""
    printed: Path | None = None
    """Where what it prints is kept; `once` keeps that of its last run."""


def once(command: Command, limit: float = 900) -> Cost:
    """Run a command to its end. Raises RuntimeError, with what it printed, if it fails."""
    if command.before is not None:
        command.before()
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(
        list(command.arguments),
        cwd=command.folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=limit,
        # TrainCheck ends by killing its process group, which would be this one.
        start_new_session=True,
    )
    wall = time.perf_counter() - began
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    if command.printed is not None:
        command.printed.write_text(done.stdout)
    if done.returncode not in command.statuses:
        raise RuntimeError(
            f"{' '.join(command.arguments)} ended with {done.returncode}:\n{done.stdout[-2000:]}"
        )
    return Cost(wall, now.ru_utime + now.ru_stime - used.ru_utime - used.ru_stime)


def in_turn(
    commands: Mapping[str, Command], rounds: int, measure: Callable[[Command], M] = once
) -> dict[str, list[M]]:
    """Measure all commands `rounds` times, one after the other in each round."""
    costs: dict[str, list[M]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            costs[name].append(measure(command))
    return costs


def paced(command: Command) -> Cost:
    """What a command takes from its first marked line to its last: its loop, without start and end."""
    read = marks(command)
    return read[-1] - read[0]


def marks(command: Command, limit: float = 900) -> list[Cost]:
    """The clocks at each line that begins as `paces` says: the time, and the CPU time used since the start.

    CPU time is that of the process and of those that it started. Raises RuntimeError if it fails or prints fewer than two
    such lines.
    """
    if command.before is not None:
        command.before()
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    read: list[Cost] = []
    printed: list[str] = []
    with subprocess.Popen(
        list(command.arguments),
        cwd=command.folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as process:
        for line in process.stdout or ():
            printed.append(line)
            if re.match(command.paces, line):
                read.append(Cost(time.perf_counter(), cpu_of(process.pid)))
        status = process.wait(limit)
    if status not in command.statuses or len(read) < 2:
        raise RuntimeError(
            f"{' '.join(command.arguments)} ended with {status}:\n{''.join(printed)[-2000:]}"
        )
    return read


def cpu_of(process: int) -> float:
    """CPU seconds of a process and of its running children, from Linux's own count."""
    folder = Path(f"/proc/{process}")
    fields = (folder / "stat").read_text().rpartition(")")[2].split()
    children = (folder / f"task/{process}/children").read_text().split()
    own = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(cpu_of(int(child)) for child in children)


def median(costs: Sequence[Cost]) -> float:
    """The median wall time."""
    return statistics.median(cost.wall for cost in costs)


def machine() -> str:
    """One line on what the numbers were measured with."""
    import importlib.metadata as metadata

    return (
        f"{os.cpu_count()} cores ({platform.machine()}), Python {platform.python_version()}, "
        f"torch {metadata.version('torch')}, one thread"
    )
