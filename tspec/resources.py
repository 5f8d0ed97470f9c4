"""The folders that ship with tspec: the grammar, the standard library and the rule packs."""

import os
from pathlib import Path
from typing import Literal, get_args

Folder = Literal["grammars", "stdlib", "specs"]
SPECS: tuple[Folder, ...] = ("stdlib", "specs")
"""Folders that hold specs."""

PACKAGE = Path(__file__).resolve().parent


def shipped(folder: Folder) -> Path:
    """The path of a shipped folder: inside the package in a wheel, beside it in a checkout.

    Raises FileNotFoundError if the installation lacks the folder.
    """
    for parent in (PACKAGE, PACKAGE.parent):
        path = parent / folder
        if path.is_dir():
            return path
    raise FileNotFoundError(f"this installation of tspec lacks its folder {folder}/ in {PACKAGE}")


def stable(file: str, root: Path) -> str:
    """A path that is the same on every machine: `tspec:stdlib/data.tspec` for a shipped file, else
    relative to `root`.

    A file outside of `root` keeps its path. Parts are joined by `/` on any system.
    """
    path = Path(os.path.abspath(file))
    for folder in get_args(Folder):
        for parent in (PACKAGE, PACKAGE.parent):
            if path.is_relative_to(parent / folder):
                return f"tspec:{folder}/{path.relative_to(parent / folder).as_posix()}"
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else file


def is_shipped(path: Path) -> bool:
    """True if a file is one of the specs that ship with tspec."""
    folders = (
        parent / name for parent in (PACKAGE, PACKAGE.parent) for name in ("stdlib", "specs")
    )
    return any(path.resolve().is_relative_to(folder) for folder in folders)
