"""How a job's source files are named in what it tells and leaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Sources:
    """The project's folder, from which on files are named, and whether their names are left out."""

    root: Path
    redacted: bool = False
    """No file, line, function or command of the script is told."""

    def as_json(self) -> dict[str, Any]:
        """As the processes that a job starts are told of it."""
        return {"root": str(self.root.absolute()), "redacted": self.redacted}

    @staticmethod
    def of_json(said: Mapping[str, Any]) -> Sources:
        """What `as_json` made."""
        return Sources(Path(said["root"]), said["redacted"])
