"""One side of a comparison: a program that was loaded by itself, and the displayed names of its
files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tspec.diagnostics import Diagnostic, render
from tspec.diff.changes import DeclarationText
from tspec.resolve import load
from tspec.resolve.modules.files import Unit
from tspec.resolve.outline import canonical_text
from tspec.resolve.program.rules import Program, Vocabulary
from tspec.source import Source, Span

NOTHING = Program((), Vocabulary((), (), (), ()))


@dataclass(frozen=True, slots=True)
class Side:
    """A program with the names under which its files are shown."""

    name: str
    program: Program = NOTHING
    units: tuple[Unit, ...] = ()
    shown: Mapping[str, str] = field(default_factory=dict)
    """Path prefix -> its displayed text, for files in a temporary folder."""

    def written(self, source: Source, span: Span) -> DeclarationText:
        """The canonical text and place of the declaration that stands at a span, or whose name does."""
        unit = next(unit for unit in self.units if unit.source.path == source.path)
        line = source.position(span.start).line
        return DeclarationText(canonical_text(unit, span), self.path(source.path), line)

    def path(self, path: str) -> str:
        """A file as a person knows it."""
        for prefix, instead in self.shown.items():
            if path.startswith(prefix):
                return instead + path[len(prefix) :]
        return path


class Unreadable(Exception):
    """A side has errors; `rendered` are its diagnostics as text."""

    def __init__(self, side: Side, diagnostics: tuple[Diagnostic, ...]) -> None:
        super().__init__(side.name)
        self.side = side
        self.diagnostics = diagnostics

    @property
    def files(self) -> frozenset[str]:
        """The files with errors, as they were read."""
        return frozenset(d.source.path for d in self.diagnostics if d.severity == "error")

    @property
    def rendered(self) -> str:
        """The diagnostics, with files as they are shown."""
        errors = sum(d.severity == "error" for d in self.diagnostics)
        texts = [render(replace(d, source=_renamed(d.source, self.side))) for d in self.diagnostics]
        what = f"{errors} error{'' if errors == 1 else 's'}"
        return "\n\n".join([*texts, f"tspec: {what} on the side `{self.side.name}`"])


def _renamed(source: Source, side: Side) -> Source:
    return Source(side.path(source.path), source.text)


def load_side(
    name: str,
    paths: Sequence[Path],
    *,
    project: Path | None = None,
    shown: Mapping[str, str] | None = None,
) -> Side:
    """Load one side, its modules, `let`s and events among themselves. Raises Unreadable."""
    side = Side(name, shown=dict(shown or {}))
    if not paths:
        return side
    loaded = load(paths, project=project)
    if loaded.program is None:
        raise Unreadable(side, loaded.diagnostics)
    return replace(side, program=loaded.program, units=loaded.units)
