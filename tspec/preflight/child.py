"""The process of a dry run: the script, unedited, as one rank of a process group without others."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NoReturn


def run(file: Path, rank: int, world: int, command: tuple[str, ...]) -> int:
    """Run the script's first step and write what it showed; the script's own exit status."""
    from tspec.preflight.fake_ranks import fake_ranks
    from tspec.preflight.observer import WATCH, Observer
    from tspec.runtime.live import LiveJob
    from tspec.runtime.live.follow import ProcessEnd
    from tspec.runtime.live.script import run_script
    from tspec.runtime.sources import Sources
    from tspec.targets.adapters import ADAPTERS

    observer = Observer(file, rank, world)
    with fake_ranks(rank, world), observer.following():
        job = LiveJob(WATCH, [observer], Sources(Path.cwd()), ADAPTERS)
        ending = ProcessEnd(job, lambda: None)
        ending.arm()
        try:
            return run_script(command, job)
        finally:
            ending.disarm()


def main() -> NoReturn:
    """The arguments are the file to write, a rank, the number of ranks, and the command."""
    file, rank, world, *command = sys.argv[1:]
    sys.exit(run(Path(file), int(rank), int(world), tuple(command)))


if __name__ == "__main__":
    main()
