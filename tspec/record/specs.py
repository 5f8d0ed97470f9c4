"""The vocabulary that a recording watches: the shipped one, and that of the project's own specs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tspec.diagnostics import render
from tspec.record import RecordingError
from tspec.resolve import load
from tspec.resolve.program.rules import Vocabulary
from tspec.resources import shipped

SHIPPED = (
    "torch",
    "hygiene",
    "health",
    "replicas",
    "data",
    "precision",
    "checkpoint",
    "communication",
    "architecture",
)
"""Modules whose events, and callables that their rules name, every recording watches."""


def vocabulary(specs: Sequence[Path]) -> Vocabulary:
    """The merged vocabulary. Raises RecordingError with all that is wrong with the specs."""
    folder = shipped("stdlib")
    paths = [path for path in (folder / f"{name}.tspec" for name in SHIPPED) if path.exists()]
    own = [path for path in specs if path.resolve() not in {each.resolve() for each in paths}]
    loaded = load([*paths, *own])
    if loaded.program is None:
        wrong = [render(each) for each in loaded.diagnostics if each.severity == "error"]
        raise RecordingError("\n\n".join(wrong))
    return loaded.program.vocabulary
