"""The file of a baseline: its format, and the faults of a malformed one.

A baseline is JSON in one canonical form, so that its changes can be reviewed. An entry names a
finding by its fingerprint, which contains no line and no step, and describes it in words.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from tspec.printable import json_text

VERSION = 1
"""The version of the format of baselines."""


class BaselineError(ValueError):
    """A file is no baseline; the message says why."""


@dataclass(frozen=True, slots=True, order=True)
class BaselineEntry:
    """One accepted finding: its place, its message, and its fingerprint."""

    command: str
    file: str
    rule: str
    subject: str
    """The subject of a finding about a run; the message of any other."""
    fingerprint: str


def read(file: Path) -> tuple[BaselineEntry, ...]:
    """The entries of a baseline. Raises BaselineError, and OSError if there is no such file."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(content, dict):
            raise ValueError("it is no JSON object")
        version, findings = content["version"], content["findings"]
        if version == VERSION and isinstance(findings, list):
            return tuple(_read_entry(each, number) for number, each in enumerate(findings, 1))
    except KeyError as problem:
        raise _no_baseline(file, f"it has no {problem}") from None
    except (ValueError, TypeError, RecursionError) as problem:
        raise _no_baseline(file, str(problem)) from None
    if version == VERSION:
        raise _no_baseline(file, "`findings` is no list")
    if isinstance(version, int):
        raise BaselineError(
            f"{file} is a baseline of version {version}, and this tspec knows {VERSION}"
        )
    raise _no_baseline(file, "`version` is no number")


def _no_baseline(file: Path, problem: str) -> BaselineError:
    said = " ".join(problem.split())
    return BaselineError(
        f"{file} is no baseline ({said}); fix it, or remove it and write one with --update-baseline"
    )


def _read_entry(content: Any, number: int) -> BaselineEntry:
    """Read one entry. Raises ValueError, with its number, for a malformed one."""
    names = [field.name for field in fields(BaselineEntry)]
    if not isinstance(content, dict) or set(content) != set(names):
        raise ValueError(f"finding {number} does not have the keys {', '.join(names)}")
    for name, value in content.items():
        if not isinstance(value, str):
            raise ValueError(f"`{name}` of finding {number} is no text")
        if "\0" in value or any("\ud800" <= each <= "\udfff" for each in value):
            raise ValueError(f"`{name}` of finding {number} holds what is no character")
    return BaselineEntry(**content)


def text(entries: Iterable[BaselineEntry]) -> str:
    """A baseline as it is written: sorted, each entry once, with a newline at its end."""
    content: dict[str, Any] = {
        "version": VERSION,
        "findings": [asdict(entry) for entry in sorted(set(entries))],
    }
    return json_text(content) + "\n"
