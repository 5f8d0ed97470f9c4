"""Selects the recordings to infer from. A repeated recording counts once, and an incomplete one is
noted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tspec.trace.model import missing_ranks, ranks_in_words
from tspec.trace.read import open_tables


@dataclass(frozen=True, slots=True)
class Recordings:
    """The recordings to infer from, and a line on each that is not a good run of its own."""

    runs: tuple[Path, ...]
    notes: tuple[str, ...]


def examine(runs: Sequence[Path]) -> Recordings:
    """Leave out repetitions, and note incomplete recordings. Raises TraceError for a folder without
    a trace.
    """
    kept: list[Path] = []
    notes: list[str] = []
    for run in runs:
        same = next((other for other in kept if other.resolve() == run.resolve()), None)
        if same is not None:
            notes.append(f"{run} is given twice; it counts once")
            continue
        copied = next((other for other in kept if _same_content(other, run)), None)
        if copied is not None:
            notes.append(f"{run} holds the same recording as {copied}; it counts once")
            continue
        kept.append(run)
        notes += _incomplete(run)
    return Recordings(tuple(kept), tuple(notes))


def _incomplete(run: Path) -> list[str]:
    """A line on each stream that does not reach the end of the run, and on ranks without a stream."""
    tables = open_tables(run, ("record",))
    streams = [table for table in tables.streams if table.worker is None]
    lines = [
        f"{run}: the recording of rank {stream.rank} does not reach the end of the run "
        f"({stream.ending.words}); drafts come from what it holds"
        for stream in streams
        if stream.ending.how != "finished"
    ]
    if missing := missing_ranks((stream.rank for stream in streams), tables.world):
        ranks = ", ".join(map(ranks_in_words, missing))
        lines.append(f"{run}: nothing was recorded on {ranks} of {tables.world:,}")
    return lines


def _same_content(one: Path, other: Path) -> bool:
    ones, others = _streams(one), _streams(other)
    if [path.stat().st_size for path in ones] != [path.stat().st_size for path in others]:
        return False
    return [_digest(path) for path in ones] == [_digest(path) for path in others]


def _streams(run: Path) -> list[Path]:
    """The files of a recording's streams, in order of rank and worker."""
    return [table.path for table in open_tables(run, ("record",)).streams]


def _digest(path: Path) -> bytes:
    with path.open("rb") as held:
        return hashlib.file_digest(held, "sha256").digest()
