"""Sweeps of clean jobs: each runs under `tspec run` with packs that ship, which are to report nothing of it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.jobs import PATIENCE, done


@dataclass(frozen=True, slots=True)
class Swept:
    """A clean job under the packs."""

    name: str
    ranks: int
    seconds: float
    decided: int
    """Instances of rules."""
    findings: tuple[str, ...]
    """Rules that spoke; a job that failed has its last line here."""

    @property
    def row(self) -> str:
        """In the table."""
        found = ", ".join(self.findings) or "none"
        cells = (f"`{self.name}`", self.ranks, f"{self.seconds:.0f}", f"{self.decided:,}", found)
        return f"| {' | '.join(map(str, cells))} |"


HEADER = """\
| job | ranks | seconds | decided | findings |
| --- | --- | --- | --- | --- |"""


def swept(
    name: str, ranks: int, packs: Sequence[str], script: Sequence[str], folder: Path
) -> Swept:
    """Run packs on a job. What the report holds goes to a folder."""
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    specs = [f"specs/{pack}" for pack in packs]
    begun = time.monotonic()
    try:
        ended = done("-m", "tspec", "run", *specs, "--report", str(report), "--", *script)
    except subprocess.TimeoutExpired:
        return Swept(name, ranks, PATIENCE, 0, (f"not done in {PATIENCE} seconds",))
    seconds = time.monotonic() - begun
    said = json.loads(report.read_text()) if report.exists() else []
    findings = sorted({each["rule"] for each in said})
    if (ended.returncode and not findings) or "internal error" in ended.stderr:
        findings.append((ended.stderr.strip().splitlines() or ["failed"])[-1])
    decided = re.search(r"([\d,]+) decided", ended.stdout)
    count = int(decided[1].replace(",", "")) if decided else 0
    return Swept(name, ranks, seconds, count, tuple(findings))


def print_table(
    jobs: Iterable[str], sweep: Callable[[str, Path], Swept], opening: str = ""
) -> None:
    """Print a row for each job, after an opening; the exit status is 1 if any has a finding."""
    print(f"{opening}{HEADER}", flush=True)
    silent = True
    with tempfile.TemporaryDirectory() as folder:
        for job in jobs:
            found = sweep(job, Path(folder))
            print(found.row, flush=True)
            silent &= not found.findings
    sys.exit(not silent)
