"""The destination of a recording, and its size limit on disk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Destination:
    """The folder of a recording."""

    folder: Path
    limit: int | None = None
    """Bytes that all ranks together may write; None for as many as there are."""

    def as_json(self) -> dict[str, Any]:
        """The form in which child processes of the job receive it."""
        return {"folder": str(self.folder.resolve()), "limit": self.limit}

    @staticmethod
    def of_json(said: Mapping[str, Any]) -> Destination:
        """The destination that `as_json` wrote."""
        return Destination(Path(said["folder"]), said["limit"])
