"""Starting scripts as a user would, plainly or recorded, in processes that end in bounded time."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests import warm

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = Path(__file__).resolve().parent / "scripts"
PATIENCE = 400
"""Seconds; the machine may be busy."""


def environment() -> dict[str, str]:
    """This process's, with one thread for each."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    return os.environ | threads | {"PYTHONPATH": os.pathsep.join(paths)}


def python(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """`python ARGUMENTS`, to its end."""
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd or ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def tspec(*arguments: str | Path, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """`tspec ARGUMENTS` in forks of a process that has imported torch, to its end."""
    return warm.run(*map(str, arguments), cwd=cwd, env=environment())


def recorded(
    out: Path, script: Path, *arguments: str | Path, options: Sequence[str | Path] = ()
) -> subprocess.CompletedProcess[str]:
    """`tspec record -o OUT OPTIONS -- SCRIPT ARGUMENTS`, to its end; without the line on what was recorded."""
    return without_size(tspec("record", "-o", out, *options, "--", script, *arguments))


def recorded_anew(
    out: Path, script: Path, *arguments: str | Path, options: Sequence[str | Path] = ()
) -> subprocess.CompletedProcess[str]:
    """The same in an interpreter of its own."""
    done = python("-m", "tspec", "record", "-o", out, *options, "--", script, *arguments)
    return without_size(done)


def without_size(done: subprocess.CompletedProcess[str]) -> subprocess.CompletedProcess[str]:
    """What a recorded script wrote, without the line that says how much was recorded."""
    done.stderr = re.sub(r"^recorded [\d,]+ steps?, .*\n", "", done.stderr, flags=re.MULTILINE)
    return done
