"""Writes the findings of a running job: a line on stderr for the first of each rule, JSON lines in
a file, and counts beside it.
"""

from __future__ import annotations

import fcntl
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO, TypedDict

from tspec.runtime.edges import Location
from tspec.runtime.messages.folders import write_json
from tspec.runtime.messages.say import say
from tspec.runtime.results import InstanceResult, RuleRecord
from tspec.values import about_shards, observed

KEPT = 500
"""The number of findings of one rule that are written. The rest are counted."""


SECOND = 1.0
"""The least number of seconds between two writes of counts. They are also written after each
finding.
"""


class LineRecord(TypedDict):
    """A `Location` as an object of JSON."""

    file: str
    line: int
    function: str
    text: str


class FindingRecord(TypedDict):
    """A finding as an object of JSON, which callbacks and files get."""

    rule: str
    file: str
    line: int
    step: int
    rank: int
    ranks: list[int]
    at: list[int]
    """The place of the window: two numbers, the first of which is mostly the step."""
    subject: str
    subjects: list[str]
    reason: str
    message: str
    explanation: str
    claim: str
    values: dict[str, str]
    location: LineRecord | None
    count: int
    """The number of the rule's findings on this rank so far."""
    held: int
    """The last earlier step in which the rule held; 0 if none."""
    shards: dict[str, str]
    """Subject -> the rank's part of it, if it is sharded."""


class CountsRecord(TypedDict):
    """What a process counted, as an object of JSON."""

    rank: int
    groups: dict[str, tuple[int, ...]]
    counts: dict[str, dict[str, int]]
    """Rule -> verdict -> the number of its instances."""
    reasons: dict[str, dict[str, int]]
    """Rule -> why instances are idle or unknown -> their number."""
    faults: list[str]
    stopped: str


@dataclass(slots=True)
class FindingsWriter:
    """The findings of one process, and its counts.

    Each finding is appended to `path` as a line. The file stays locked until `close`, which shows
    other processes that this one lives. A missing folder is no error for the job: nothing is
    written then.
    """

    path: Path | None = None
    callback: Callable[[FindingRecord], None] | None = None
    tell: Callable[..., None] = say
    """Takes a line for a person, and lines of details below it."""
    counts: dict[int, int] = field(default_factory=dict)
    firsts: dict[int, FindingRecord] = field(default_factory=dict)
    """The first finding of each rule, by its number."""
    _file: TextIO | None = None
    _saved: float = 0.0
    _found: bool = False
    """Something was found since the counts were written."""

    def __post_init__(self) -> None:
        if self.path is not None:
            with suppress(OSError):
                self._file = self.path.open("a", encoding="utf-8")
                fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def add(
        self,
        declared: RuleRecord,
        result: InstanceResult,
        rank: int,
        held: int = 0,
        shards: Callable[[Sequence[str]], Mapping[str, str]] = lambda subjects: {},
    ) -> None:
        """Add a violation that is reported.

        `held` is the last earlier step in which the rule held. `shards` gives, for subjects that
        are sharded, the rank's part of each.
        """
        count = self.counts[declared.number] = self.counts.get(declared.number, 0) + 1
        if count > KEPT:
            return
        found = as_dict(declared, result, rank, count, held, shards(result.subjects))
        if count == 1:
            self.firsts[declared.number] = found
            self.tell(line_of(found))
        if self.callback is not None:
            self.callback(found)
        if self._file is not None:
            with suppress(OSError):
                self._file.write(json.dumps(found) + "\n")
                self._file.flush()
            self._found = True

    @property
    def counted(self) -> Path | None:
        """The file of counts."""
        return None if self.path is None else self.path.with_suffix(".counts.json")

    def is_due(self) -> bool:
        """True if it is time to write the counts."""
        if self._file is None:
            return False
        return self._found or time.monotonic() - self._saved > SECOND

    def save(self, counted: CountsRecord) -> None:
        """Write the counts beside the findings, atomically: a reader sees the old file or the new
        one.
        """
        if self.counted is None:
            return
        self._saved, self._found = time.monotonic(), False
        with suppress(OSError):
            write_json(self.counted, counted)

    def close(self) -> None:
        """No more findings."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
            self._file = None


def as_dict(
    declared: RuleRecord,
    result: InstanceResult,
    rank: int,
    count: int,
    held: int,
    shards: Mapping[str, str],
) -> FindingRecord:
    """A finding as an object of JSON."""
    at = result.location
    return {
        "rule": declared.name,
        "file": declared.file,
        "line": declared.line,
        "step": result.step,
        "rank": result.ranks[0] if result.ranks else rank,
        "ranks": list(result.ranks),
        "at": list(result.at),
        "subject": ", ".join(result.subjects),
        "subjects": list(result.subjects),
        "reason": result.reason,
        "message": result.reason or declared.text or declared.claim or declared.name,
        "explanation": declared.text,
        "claim": declared.claim,
        "values": dict(result.values),
        "location": None if at is None else _line_record(at),
        "count": count,
        "held": held,
        "shards": dict(shards),
    }


def _line_record(at: Location) -> LineRecord:
    return {"file": at.file, "line": at.line, "function": at.function, "text": at.text}


def line_of(found: FindingRecord) -> str:
    """A finding as one line for the terminal."""
    names = _names(found)
    where = f"{found['file']}:{found['line']}"
    at = "" if found["location"] is None else f"; {Location(**found['location']).sentence}"
    return (
        f"step {found['step']} rank {found['rank']}:{f' {names}' if names else ''} {found['rule']}"
        f" ({where}): {words_of(found)}{at}"
    )


def details_of(found: FindingRecord) -> list[str]:
    """A finding as lines below its rule: step, ranks and subjects, what was expected and read, the
    place in the script, and the rule's explanation.
    """
    ranks = found["ranks"] or [found["rank"]]
    met = [f"step {found['step']}", f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}"]
    names = _names(found)
    lines = [f"{', '.join([*met, names] if names else met)}: {words_of(found)}"]
    if found["location"] is not None:
        lines.append(Location(**found["location"]).sentence)
    if found["explanation"]:
        lines.append(_in_one_line(found["explanation"]))
    return lines


def words_of(found: FindingRecord) -> str:
    """What was expected and what was read instead; the reason, if ranks could not be compared."""
    claim = found["claim"] or _in_one_line(found["message"])
    said = observed(claim, found["reason"], found["values"])
    return f"{said}{about_shards(found['shards'])}"


def _names(found: FindingRecord) -> str:
    """The subjects. The number of a call says little without its event, which the rule names."""
    return ", ".join(name for name in found["subjects"] if not name.startswith("#"))


def _in_one_line(text: str) -> str:
    return " ".join(str(text).split())
