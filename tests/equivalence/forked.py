"""Starts the processes of a side from one that has imported megatron-core already: a sweep imports it once, and not in each rank."""

from __future__ import annotations

import multiprocessing
import os
import socket
import sys
from pathlib import Path

from tspec.equivalence import child
from tspec.equivalence.launch import Failed, SideRun, prepared


def forked(run: SideRun, folder: Path) -> Path:
    """Run a command on its ranks; the folder with the recording of each rank. Raises Failed."""
    _, place, file = prepared(run, folder)
    log = folder / f"{run.name}.log"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = multiprocessing.get_context("fork")
    ranks = [
        context.Process(target=_rank, args=(rank, run.world, port, Path(place), Path(file), log))
        for rank in range(run.world)
    ]
    for each in ranks:
        each.start()
    for each in ranks:
        each.join()
    if any(each.exitcode for each in ranks):
        raise Failed(
            f"the run `{run.name}` failed", log.read_text(encoding="utf-8", errors="replace")
        )
    return Path(place)


def _rank(rank: int, world: int, port: int, place: Path, file: Path, log: Path) -> None:
    """One rank, with the variables that torchrun sets."""
    said = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for stream in (1, 2):
        os.dup2(said, stream)
    variables = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": world, "LOCAL_WORLD_SIZE": world}
    variables |= {"MASTER_PORT": port}
    os.environ.update({key: str(value) for key, value in variables.items()})
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    sys.exit(child.run(place, file))
