"""Editions of the language, and the upgrade of a file from an older edition to the newest.

Files of every edition are read. The changes of an edition are a tuple of migrations, each a
function from tree to tree. Loading an older file applies them in memory, and `tspec fmt --upgrade`
writes their result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from tspec.syntax import nodes


@dataclass(frozen=True, slots=True)
class Migration:
    """One change that an edition made."""

    what: str
    """In the words of a list of changes: `classes stand without quotes`."""
    change: Callable[[nodes.File], nodes.File]


@dataclass(frozen=True, slots=True)
class EditionDefinition:
    """One edition of the language, and its changes to the one before."""

    year: int
    migrations: tuple[Migration, ...] = ()


@dataclass(frozen=True, slots=True)
class Upgraded:
    """A file in the newest edition, and which changes touched it."""

    file: nodes.File
    done: tuple[str, ...] = ()


HISTORY = (EditionDefinition(2026),)
"""The editions of the language that this tspec reads, oldest first."""

EDITIONS = tuple(edition.year for edition in HISTORY)

NEWEST = EDITIONS[-1]
"""The edition in which tspec writes files."""


def upgrade(file: nodes.File, history: Sequence[EditionDefinition] = HISTORY) -> Upgraded:
    """A file of any edition in the newest one. A file that names no edition is of the oldest."""
    newest = history[-1].year
    year = file.edition.year if file.edition else history[0].year
    done: list[str] = []
    for edition in history:
        for migration in edition.migrations if edition.year > year else ():
            changed = migration.change(file)
            if changed != file:
                done.append(migration.what)
            file = changed
    if file.edition is None:
        return Upgraded(replace(file, edition=nodes.Edition(newest)), tuple(done))
    if file.edition.year < newest:
        return Upgraded(replace(file, edition=replace(file.edition, year=newest)), tuple(done))
    return Upgraded(file)
