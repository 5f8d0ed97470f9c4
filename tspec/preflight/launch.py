"""Runs the dry run of a rank in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from tspec.preflight.facts import RankFacts

CHILD = "tspec.preflight.child"
SHOWN = 20
"""So many last lines of a script that failed are shown."""


class DryRunFailed(Exception):
    """The script ended with an error, or had no model. `said` are the last lines that it printed."""

    def __init__(self, message: str, said: str) -> None:
        super().__init__(message)
        self.said = said


Tensors = Literal["fake", "real"]
"""Fake tensors have shapes and no elements."""


def dry_run(command: Sequence[str], rank: int, world: int, tensors: Tensors = "real") -> RankFacts:
    """What one rank of many shows in its first step. Raises Failed."""
    with tempfile.TemporaryDirectory(prefix="tspec-preflight-") as folder:
        file = Path(folder, "facts.json")
        ended = subprocess.run(
            [sys.executable, "-m", CHILD, str(file), str(rank), str(world), tensors, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        said = ended.stdout.decode("utf-8", errors="replace").splitlines()[-SHOWN:]
        if ended.returncode:
            why = f"rank {rank} of {world} ended with status {ended.returncode}"
            raise DryRunFailed(why, "\n".join(said))
        if not file.exists():
            raise DryRunFailed(
                f"rank {rank} of {world} ended before a model was seen", "\n".join(said)
            )
        return RankFacts.read(file)
