"""Where the folders that ship with tspec lie: the grammar, the standard library and the rule packs."""

from pathlib import Path
from typing import Literal

Folder = Literal["grammars", "stdlib", "specs"]

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


def is_shipped(path: Path) -> bool:
    """Whether a file is one of the rules that ship with tspec."""
    folders = (
        parent / name for parent in (PACKAGE, PACKAGE.parent) for name in ("stdlib", "specs")
    )
    return any(path.resolve().is_relative_to(folder) for folder in folders)
