"""Runs a script unedited under `tspec run`, as a user would, and reads what was found."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests import warm

ROOT = Path(__file__).resolve().parents[1]
PATIENCE = 800
"""Seconds; the machine may be busy."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run under `tspec run` found."""

    headlines: tuple[dict, ...]
    """Findings, each with its consequences."""
    decided: int
    stderr: str

    @property
    def all(self) -> list[dict]:
        """All findings, those folded under others too."""
        waiting, found = list(self.headlines), []
        while waiting:
            one = waiting.pop(0)
            found.append(one)
            waiting += one["consequences"]
        return found

    @property
    def messages(self) -> list[str]:
        """One line for each finding."""
        return [f"{one['rule']}: {one['message']}" for one in self.all]

    def steps(self, rule: str) -> list[int]:
        """The steps at which a rule, named without its module, was first violated."""
        return [one["step"] for one in self.all if one["rule"].rpartition(".")[2] == rule]


def done(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """The interpreter with arguments, in the repository, to its end. `more` is added to its environment."""
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=_environment() | more,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def _environment() -> dict[str, str]:
    outside = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    return outside | {"OMP_NUM_THREADS": "1"}


def tspec(*arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """`tspec` with arguments, as `done`, but in forks of a process that has imported torch."""
    return warm.run(*arguments, env=_environment() | more)


def run(specs: Sequence[str], script: Path, report: Path, *options: str) -> Outcome:
    """Run a script with the rules of some specs, in forks; `report` is a file that is written."""
    ended = tspec("run", *specs, "--report", str(report), "--", str(script), *options)
    said = ended.stdout + ended.stderr
    assert ended.returncode in (0, 1), said
    decided = re.search(r"([\d,]+) decided", ended.stdout)
    assert decided is not None, said
    headlines = tuple(json.loads(report.read_text()))
    return Outcome(headlines, int(decided[1].replace(",", "")), ended.stderr)
