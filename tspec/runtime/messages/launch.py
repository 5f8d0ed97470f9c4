"""The place of this process in a launch by torchrun, or by a scheduler that sets its variables."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Launch:
    """One rank of a job that a launcher started. Without a launcher there is one rank, and no job name."""

    job: str = ""
    """Identifies the job among all others on this machine, also those in containers; empty without
    a launcher.
    """
    rank: int = 0
    world: int = 1
    nodes: bool = False
    """Ranks may be on several machines."""
    first_is_here: bool = True
    """The first rank is known to be on this machine."""
    attempt: int = 0
    """The number of times that the launcher has started the job again."""
    more: bool = False
    """The launcher starts the job again if it fails."""

    @property
    def reports(self) -> bool:
        """The first rank reports for all."""
        return self.rank == 0


def launched(environment: Mapping[str, str] = os.environ, parent: int | None = None) -> Launch:
    """Reads from the environment how this process was started. `parent` is the process id of the
    launcher; the default is this process's parent.

    Raises ValueError if a variable that should be a number is none.
    """
    world = int(environment.get("WORLD_SIZE", "1"))
    run_id = environment.get("TORCHELASTIC_RUN_ID")
    if "RANK" not in environment or (world < 2 and run_id is None):
        return Launch()
    attempt = int(environment.get("TORCHELASTIC_RESTART_COUNT", "0"))
    if run_id is None:
        run_id = "-".join(environment.get(name, "") for name in ("MASTER_ADDR", "MASTER_PORT"))
    parent = os.getppid() if parent is None else parent
    rank = int(environment["RANK"])
    return Launch(
        job="+".join((host(), _plain(run_id), str(parent), began(parent))),
        rank=rank,
        world=world,
        nodes=int(environment.get("LOCAL_WORLD_SIZE", "1")) < world,
        first_is_here=rank == int(environment.get("LOCAL_RANK", "0")),
        attempt=attempt,
        more=attempt < int(environment.get("TORCHELASTIC_MAX_RESTARTS", "0")),
    )


def host() -> str:
    """This machine's name as part of a file's name, since machines may share the user's folder."""
    return _plain(platform.node())


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9.-]", "_", text)[:80]


def began(process: int) -> str:
    """The start time of a process in clock ticks of this machine; empty if unknown. It tells apart
    processes with a reused id.
    """
    try:
        text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return text.rpartition(")")[2].split()[19]


def launcher_lives(job: str) -> bool:
    """True if the launcher of a job on this machine still runs."""
    parts = job.split("+")
    return (
        len(parts) == 4
        and bool(parts[3])
        and parts[2].isdecimal()
        and began(int(parts[2])) == parts[3]
    )
