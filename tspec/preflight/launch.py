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


def dry_run(command: Sequence[str], rank: int, world: int, tensors: Tensors = "real") -> RankFacts:
    """The facts of one rank of many in its first step. Raises DryRunFailed."""
    with tempfile.TemporaryDirectory(prefix="tspec-preflight-") as folder:
        file = Path(folder, "facts.json")
        ended = subprocess.run(
            [sys.executable, "-m", CHILD, str(file), str(rank), str(world), tensors, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        said = _told(ended.stdout.decode("utf-8", errors="replace").splitlines())
        if ended.returncode:
            why = f"rank {rank} of {world} ended with status {ended.returncode}"
            raise DryRunFailed(why, said)
        if not file.exists():
            raise DryRunFailed(f"rank {rank} of {world} ended before a model was seen", said)
        return RankFacts.read(file)


def _told(lines: Sequence[str]) -> str:
    """All from the first traceback on, since the cause comes first; without one the last lines."""
    first = (number for number, line in enumerate(lines) if line.startswith("Traceback"))
    return "\n".join(lines[next(first, max(len(lines) - SHOWN, 0)) :])
