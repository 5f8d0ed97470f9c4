"""The folder of a recording: whether it can hold one is known before the job begins."""

from __future__ import annotations

import os
from pathlib import Path

from tspec.files import obstacle_in, reason


def obstacle(folder: Path) -> str | None:
    """Why nothing can be recorded into a folder, or None. Nothing is left behind."""
    try:
        if folder.exists() and not folder.is_dir():
            return "it is not a folder"
        if (folder / "meta.json").exists() and not _is_of_a_recording(folder):
            return "its meta.json is not of a recording, and would be overwritten"
    except OSError as problem:
        return reason(problem)
    return obstacle_in(folder)


def obstacle_to_a_new_one(folder: Path) -> str | None:
    """The same for a job that begins; also that the folder holds a recording already.

    Under a launcher other ranks record into the same folder; each stream is checked by itself.
    """
    several = int(os.environ.get("WORLD_SIZE", "1")) > 1
    if not several and folder.is_dir() and any(folder.glob("*.arrow")):
        return "it holds a recording already, which is not overwritten (delete the folder to use it again)"
    return obstacle(folder)


def _is_of_a_recording(folder: Path) -> bool:
    from tspec.trace.errors import TraceError
    from tspec.trace.meta import read_meta  # pyarrow, which only a folder with such a file needs

    try:
        read_meta(folder)
    except TraceError:
        return False
    return True
