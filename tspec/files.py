"""Files that commands write. Obstacles are found before the work, and a file is replaced as a
whole.
"""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path


def obstacle(file: Path) -> str | None:
    """Why `write` could not write a file now, or None. Nothing is left behind."""
    try:
        if file.is_dir():
            return "it is a folder"
        if file.exists() and not os.access(file, os.W_OK):
            return "it is read-only"
        return None if _is_special(file) else obstacle_in(Path(os.path.realpath(file)).parent)
    except OSError as problem:
        return reason(problem)


def obstacle_in(folder: Path) -> str | None:
    """Why no file could be made in a folder, or in one that is to be made; or None."""
    try:
        there = next(each for each in (folder, *folder.absolute().parents) if each.exists())
        if not there.is_dir():
            return f"{_from_here(there)} is not a folder"
        with tempfile.TemporaryFile(dir=there):
            return None
    except OSError as problem:
        return reason(problem)


def write(file: Path, text: str) -> None:
    """Write a text file, and create the folders above it. Raises OSError, and then leaves the old
    file.

    Pipes and devices are written directly. Lone surrogates, as in names of files that are not
    UTF-8, are written as `\\udc80`, which JSON reads back.
    """
    target = Path(os.path.realpath(file))
    if _is_special(target):
        target.write_text(text, encoding="utf-8", errors="backslashreplace")
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".tspec-{os.getpid()}-{secrets.token_hex(4)}")
    try:
        with draft.open("x", encoding="utf-8", errors="backslashreplace") as out:
            out.write(text)
            out.flush()
            # Some file systems report only here that they are full.
            os.fsync(out.fileno())
        if target.exists():
            shutil.copymode(target, draft)
        draft.replace(target)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise


def reason(problem: OSError) -> str:
    """The reason of an error, in the system's words: `no space left on device`."""
    said = problem.strerror or str(problem)
    return said[:1].lower() + said[1:]


def _from_here(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _is_special(file: Path) -> bool:
    return file.exists() and not file.is_file()
