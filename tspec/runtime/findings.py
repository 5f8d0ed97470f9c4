"""What a running job tells of its violated rules: a line on stderr at the first, and JSON lines in a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from tspec.runtime.ledger import Declared, Outcome

KEPT = 500
"""Findings of one rule that are written; the rest are counted."""


@dataclass(slots=True)
class Findings:
    """The findings of one process. `path` is opened with the first."""

    path: Path | None = None
    callback: Callable[[dict[str, Any]], None] | None = None
    counts: dict[int, int] = field(default_factory=dict)
    _file: TextIO | None = None

    def add(self, declared: Declared, outcome: Outcome, rank: int) -> None:
        """A rule was violated, and something is due about it."""
        count = self.counts[declared.number] = self.counts.get(declared.number, 0) + 1
        if count > KEPT:
            return
        found = as_dict(declared, outcome, rank, count)
        if count == 1:
            sys.stderr.write(f"{line_of(found)}\n")
        if self.callback is not None:
            self.callback(found)
        if self.path is not None:
            if self._file is None:
                self._file = self.path.open("a", encoding="utf-8")
            self._file.write(json.dumps(found) + "\n")
            self._file.flush()

    def close(self) -> None:
        """No more findings."""
        if self._file is not None:
            self._file.close()
            self._file = None


def as_dict(declared: Declared, outcome: Outcome, rank: int, count: int) -> dict[str, Any]:
    """A finding as an object of JSON."""
    return {
        "rule": declared.name,
        "file": declared.file,
        "line": declared.line,
        "step": outcome.step,
        "rank": outcome.ranks[0] if outcome.ranks else rank,
        "ranks": list(outcome.ranks),
        "at": list(outcome.at),
        "subject": ", ".join(outcome.subjects),
        "subjects": list(outcome.subjects),
        "reason": outcome.reason,
        "message": outcome.reason or declared.text or declared.name,
        "values": dict(outcome.values),
        "count": count,
    }


def line_of(found: dict[str, Any]) -> str:
    """A finding as one line for the terminal: what was read, or else what the rule says."""
    subject = f" {found['subject']}" if found["subject"] else ""
    values = ", ".join(f"{text} = {value}" for text, value in found["values"].items())
    said = values or " ".join(str(found["message"]).split())
    where = f"{found['file']}:{found['line']}"
    return f"tspec: step {found['step']} rank {found['rank']}:{subject} {found['rule']} ({where}): {said}"
