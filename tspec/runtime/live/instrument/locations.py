"""The line of the user's code that is running. For a call, it is the line that made the call.

The stack is walked by its frames; no traceback is made. Facts about a code object and its lines are
cached by identity.
"""

from __future__ import annotations

import linecache
import os
import sys
import sysconfig
from enum import IntEnum
from pathlib import Path
from types import CodeType, FrameType

import torch

from tspec.runtime.live.instrument.frames import is_ours
from tspec.runtime.sources import Sources
from tspec.values import Location

MOST = 4096
"""Code objects, and lines, that are known at a time: a job may make code without end."""


class CodeOwner(IntEnum):
    """The owner of a frame's code.

    A location is the frame with the lowest owner on the stack, the innermost of these.
    """

    USER = 0
    PACKAGE = 1
    """An installed package, or code that lies in no file."""
    PLATFORM = 2
    """torch and Python itself."""
    TSPEC = 3


class ScriptLocations:
    """Finds the line that runs, and names it as `sources` says."""

    def __init__(self, sources: Sources) -> None:
        self._root = Path(os.path.abspath(sources.root))
        self._redacted = sources.redacted
        self._owners: dict[int, tuple[CodeType, CodeOwner]] = {}
        self._lines: dict[tuple[int, int], Location] = {}
        """(code, instruction) -> its line. The code lives as long as its owner is known."""

    def here(self) -> Location | None:
        """The line of the nearest frame of the user's code; without one, that of a package or
        torch.

        None if all frames are tspec's, as on a thread of the autograd engine, or if locations are
        redacted.
        """
        if self._redacted:
            return None
        owners = self._owners
        frame: FrameType | None = sys._getframe(1)
        best, least = None, CodeOwner.TSPEC
        while frame is not None:
            code = frame.f_code
            known = owners.get(id(code))
            owner = self._owner(code) if known is None else known[1]
            if owner < least:
                best, least = frame, owner
                if owner is CodeOwner.USER:
                    break
            frame = frame.f_back
        return None if best is None else self._line(best)

    def _owner(self, code: CodeType) -> CodeOwner:
        if len(self._owners) >= MOST:
            self._owners.clear()
            self._lines.clear()
        owner = CodeOwner.TSPEC if is_ours(code) else _owner_of_file(code.co_filename)
        # The code is kept, so that no other gets its id.
        self._owners[id(code)] = (code, owner)
        return owner

    def _line(self, frame: FrameType) -> Location:
        key = (id(frame.f_code), frame.f_lasti)
        found = self._lines.get(key)
        if found is None:
            if len(self._lines) >= MOST:
                self._lines.clear()
            found = self._lines[key] = self._read(frame)
        return found

    def _read(self, frame: FrameType) -> Location:
        code, line = frame.f_code, frame.f_lineno or frame.f_code.co_firstlineno
        text = linecache.getline(code.co_filename, line, frame.f_globals).strip()
        return Location(self._named(code.co_filename), line, code.co_qualname, text)

    def _named(self, file: str) -> str:
        """The path of a file relative to the project. A name that is no file is kept."""
        if file.startswith("<"):
            return file
        path = Path(os.path.abspath(file))
        return (
            path.relative_to(self._root) if path.is_relative_to(self._root) else path
        ).as_posix()


def _owner_of_file(file: str) -> CodeOwner:
    if file.startswith("<"):
        return CodeOwner.PLATFORM if file.startswith("<frozen ") else CodeOwner.PACKAGE
    if file.startswith(_TORCH):
        return CodeOwner.PLATFORM
    if not _INSTALLED.isdisjoint(Path(file).parts):
        return CodeOwner.PACKAGE
    return CodeOwner.PLATFORM if file.startswith(_PYTHON) else CodeOwner.USER


def _folder(path: str) -> str:
    return os.path.join(os.path.abspath(path), "")


_TORCH = _folder(os.path.dirname(torch.__file__))
_PYTHON = tuple({_folder(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")})
_INSTALLED = frozenset(("site-packages", "dist-packages"))
"""Folders of installed packages."""
