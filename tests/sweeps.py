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
from xml.etree import ElementTree

from tests.jobs import PATIENCE, ROOT, done
from tspec.resolve import load


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
    held: frozenset[str] = frozenset()
    """Rules, by qualified name, with an instance that was decided, of which none was violated."""

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
    report, cases = folder / "report.json", folder / "report.xml"
    for file in (report, cases):
        file.unlink(missing_ok=True)
    specs = [f"specs/{pack}" for pack in packs]
    begun = time.monotonic()
    try:
        reports = ("--report", str(report), "--report", str(cases))
        ended = done("-m", "tspec", "run", *specs, *reports, "--", *script)
    except subprocess.TimeoutExpired:
        return Swept(name, ranks, PATIENCE, 0, (f"not done in {PATIENCE} seconds",))
    seconds = time.monotonic() - begun
    said = json.loads(report.read_text()) if report.exists() else []
    findings = sorted({each["rule"] for each in said})
    if (ended.returncode and not findings) or "internal error" in ended.stderr:
        said = [*ended.stdout.strip().splitlines(), *ended.stderr.strip().splitlines()]
        findings.append(
            f"exit status {ended.returncode}: {said[-1] if said else 'nothing was said'}"
        )
    decided = re.search(r"([\d,]+) decided", ended.stdout)
    count = int(decided[1].replace(",", "")) if decided else 0
    return Swept(name, ranks, seconds, count, tuple(findings), held_in(cases))


def held_in(cases: Path) -> frozenset[str]:
    """The rules that passed, of a report in JUnit's format."""
    if not cases.exists():
        return frozenset()
    passed = (
        case
        for case in ElementTree.parse(cases).iter("testcase")
        if all(case.find(outcome) is None for outcome in ("skipped", "failure", "error"))
    )
    return frozenset(f"{case.get('classname')}.{case.get('name')}" for case in passed)


def rules_of(*packs: str) -> frozenset[str]:
    """The qualified names of all rules of packs."""
    program = load([ROOT / "specs" / pack for pack in packs]).program
    assert program is not None
    return frozenset(rule.qualified for rule in program.rules)


def undecided(
    jobs: Iterable[str], sweep: Callable[[str, Path], Swept], rules: Iterable[str]
) -> frozenset[str]:
    """The rules that no job decides, each of which is to be silent.

    Prints for each job the rules that it is the first to decide.
    """
    left = frozenset(rules)
    with tempfile.TemporaryDirectory() as folder:
        for job in jobs:
            found = sweep(job, Path(folder))
            assert not found.findings, f"{job}: {', '.join(found.findings)}"
            print(f"{job}: {', '.join(sorted(left & found.held)) or 'nothing more'}", flush=True)
            left -= found.held
    print(f"no job: {', '.join(sorted(left)) or 'none'}", flush=True)
    return left


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
