"""Separates tspec's frames of a stack from the script's."""

from __future__ import annotations

from pathlib import Path
from types import CodeType
from typing import Any

from tspec.runtime.live.instrument.swap import PREFIX

PACKAGE = f"{Path(__file__).resolve().parents[3]}/"
"""The folder of tspec's code."""


def is_ours(code: CodeType) -> bool:
    """True if the code is tspec's, or replaces that of a watched function."""
    names = code.co_names
    return code.co_filename.startswith(PACKAGE) or bool(names and names[0].startswith(PREFIX))


def run_main(code: CodeType, namespace: dict[str, Any]) -> None:
    """Run a script. Without tspec, no frame is outside of the script's own."""
    exec(code, namespace)
