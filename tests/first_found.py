"""What `tspec run` reports first of a job with a fault."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.jobs import tspec


@dataclass(frozen=True, slots=True)
class Found:
    """The first finding of a run; the subject is empty where a rule speaks of none."""

    rule: str
    step: int
    ranks: tuple[int, ...]
    subject: str


def matches(found: Found | None, expected: Found | None) -> bool:
    """A finding is the one that is expected, of which the subject's name begins so."""
    if found is None or expected is None:
        return found is expected
    begins = found.subject.startswith(expected.subject)
    return (
        begins
        and bool(found.subject) == bool(expected.subject)
        and (found.rule, found.step, found.ranks) == (expected.rule, expected.step, expected.ranks)
    )


def first_found(specs: Sequence[str], script: Sequence[str], report: Path) -> Found | None:
    """Run a job under `tspec run`; what was found first. `report` is a file that is written."""
    ended = tspec("run", *specs, "--report", str(report), "--", *script)
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


def in_words(found: Found | None) -> str:
    """A finding, as tables of faults have it."""
    if found is None:
        return "none: leaves replicas in agreement, needs equivalence"
    ranks = ("rank " if len(found.ranks) == 1 else "ranks ") + ", ".join(map(str, found.ranks))
    subject = f": `{found.subject}`" if found.subject else ""
    return f"`{found.rule}`, step {found.step}, {ranks}{subject}"
