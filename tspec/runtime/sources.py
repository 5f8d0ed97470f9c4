"""The names of a job's source files in messages and recordings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Sources:
    """The project's folder, to which file names are relative, and whether locations are redacted."""

    root: Path
    redacted: bool = False
    """No file, line, function or command of the script is shown."""

    def as_json(self) -> dict[str, Any]:
        """The form in which child processes of the job receive it."""
        return {"root": str(self.root.absolute()), "redacted": self.redacted}

    @staticmethod
    def of_json(said: Mapping[str, Any]) -> Sources:
        """The `Sources` that `as_json` wrote."""
        return Sources(Path(said["root"]), said["redacted"])
