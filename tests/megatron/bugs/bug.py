"""The faults of this folder, and what the rules say of a job that has one.

A fault is a module: its docstring says what it is and where it was met, `LAYOUT` is the job that it is put into,
`put_in` changes the real package before the job starts, and `FOUND` is what is to be reported first: the rule of
`specs/megatron`, the step, the ranks that it names, and how the subject's name begins. None: every copy agrees
with the others, so that only a comparison with one device tells.
"""

from __future__ import annotations

import importlib
import json
from dataclasses import dataclass
from pathlib import Path

from tests.megatron.jobs import TRAIN, done

HERE = Path(__file__).parent
STEPS = 3
NO_FAULTS = {"bug", "table"}


@dataclass(frozen=True, slots=True)
class Found:
    """The first finding of a run; the subject is empty where a rule speaks of none."""

    rule: str
    step: int
    ranks: tuple[int, ...]
    subject: str


@dataclass(frozen=True, slots=True)
class Bug:
    """One fault."""

    name: str
    what: str
    source: str
    layout: str
    found: Found | None

    @property
    def job(self) -> str:
        """The layout with a few steps."""
        return f"{self.layout},steps={STEPS}"

    def matches(self, found: Found | None) -> bool:
        """A finding is the one that is to be."""
        if self.found is None or found is None:
            return found is self.found
        begins = found.subject.startswith(self.found.subject) and bool(found.subject) == bool(
            self.found.subject
        )
        return begins and (found.rule, found.step, found.ranks) == (
            self.found.rule,
            self.found.step,
            self.found.ranks,
        )


def load(name: str) -> Bug:
    """The fault of a module of this folder."""
    module = importlib.import_module(f"tests.megatron.bugs.{name}")
    what, _, source = (module.__doc__ or "").partition("Source: ")
    found = None if module.FOUND is None else Found(*module.FOUND)
    return Bug(name, " ".join(what.split()), " ".join(source.split()), module.LAYOUT, found)


def all_bugs() -> list[Bug]:
    """All faults, by name."""
    return [load(path.stem) for path in sorted(HERE.glob("*.py")) if path.stem not in NO_FAULTS]


def first_found(bug: Bug, report: Path, specs: str = "specs/megatron") -> Found | None:
    """Run the job with the fault under `tspec run`; what was found first."""
    command = ("-m", "tspec", "run", specs, "--report", str(report))
    ended = done(*command, "--", TRAIN, bug.job, "--bug", bug.name)
    said = ended.stdout + ended.stderr
    assert ended.returncode in (0, 1) and "internal error" not in said, said
    found = sorted(json.loads(report.read_text()), key=lambda one: int(one["step"]))
    assert "decided" in said, said
    if not found:
        assert ended.returncode == 0, said
        return None
    first = found[0]
    rule = first["rule"].rpartition(".")[2]
    ranks = tuple(first.get("ranks") or [first["rank"]])
    return Found(rule, first["step"], ranks, first["subject"] or "")
