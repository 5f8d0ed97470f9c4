"""`tspec fmt`: rewrite specs in the canonical form, or list those that are not in it."""

from __future__ import annotations

import difflib
import gc
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated

import typer

from tspec.cli.options import spread
from tspec.cli.output import FAULT, FOUND, FOUND_NOTHING
from tspec.cli.project import Project
from tspec.cli.say import BadParameter, say
from tspec.config.model import Config
from tspec.printable import visible

PathsArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="PATHS",
        exists=True,
        help="Spec files, or folders of them.",
        show_default="`specs` of the configuration",
    ),
]


@dataclass(frozen=True, slots=True)
class FormattedFile:
    """One file before and after.

    `after` is None if it has errors, which are in `errors`. `done` are the changes of a newer
    edition.
    """

    path: Path
    before: str
    after: str | None
    errors: tuple[str, ...] = ()
    done: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FmtOptions:
    """Whether files are checked only, shown as a diff, or upgraded."""

    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit with 1 if a file would change.")
    ] = False
    diff: Annotated[
        bool, typer.Option("--diff", help="Write nothing; print what would change.")
    ] = False
    upgrade: Annotated[
        bool, typer.Option("--upgrade", help="Write files in the newest edition of the language.")
    ] = False

    @property
    def dry(self) -> bool:
        """True if nothing is written."""
        return self.check or self.diff


@spread
def fmt(project: Project, wanted: FmtOptions, paths: PathsArgument = None) -> None:
    """Rewrite spec files in the canonical form."""
    given = paths or _of_project(project.project)
    if not given:
        raise BadParameter("name files or folders, or set `specs` in the configuration")
    found = list(spec_files(given))
    if not found:
        raise BadParameter(f"no .tspec file in {', '.join(map(str, given))}")
    files = [path for path in found if not excluded(path, project.project)]
    with uncollected():
        outcomes = [format_one(path, wanted.upgrade) for path in files]
    changed = [o for o in outcomes if o.after is not None and o.after != o.before]
    for outcome in outcomes:
        for error in outcome.errors:
            say(f"{error}\n", err=True)
    for outcome in changed:
        _hand_over(outcome, wanted)
    broken = sum(outcome.after is None for outcome in outcomes)
    say(
        summary(FileCounts(len(files), len(changed), broken, len(found) - len(files)), wanted.dry),
        err=True,
    )
    if broken:
        raise typer.Exit(FAULT)
    raise typer.Exit(FOUND if changed and wanted.dry else FOUND_NOTHING)


def _of_project(config: Config) -> list[Path]:
    """The specs that are files and folders of the project, not shipped modules or packs."""
    found = [config.inside(each) for each in config.specs]
    return [path for path in found if path.exists()]


def excluded(path: Path, config: Config) -> bool:
    """True if the configuration excludes a file, or a folder that it is in, from formatting."""
    root, file = config.root.resolve(), path.resolve()
    if not config.fmt.exclude or not file.is_relative_to(root):
        return False
    inside = file.relative_to(root)
    names = [each.as_posix() for each in (inside, *inside.parents)][:-1]
    return any(
        fnmatch(name, pattern.rstrip("/")) for name in names for pattern in config.fmt.exclude
    )


def _hand_over(outcome: FormattedFile, wanted: FmtOptions) -> None:
    """Print or write a formatted file."""
    if wanted.diff:
        say(unified(outcome, "upgraded" if wanted.upgrade else "formatted"), nl=False, form="patch")
    elif wanted.check:
        say(_status(outcome, "would upgrade", "would reformat"))
    else:
        outcome.path.write_bytes((outcome.after or "").encode())
        if outcome.done:
            say(_status(outcome, "upgraded", "reformatted"))


def _status(outcome: FormattedFile, upgraded: str, formatted: str) -> str:
    """The line about a file, and below it the changes of a newer edition."""
    if not outcome.done:
        return f"{formatted} {outcome.path}"
    first, *changes = outcome.done
    return "\n".join([f"{upgraded} {outcome.path}: {first}", *(f"  {each}" for each in changes)])


@contextmanager
def uncollected() -> Iterator[None]:
    """Without garbage collection: the parser's tables are many objects and none to collect.

    It would walk them again and again, a fifth of the time that a small file takes.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def spec_files(paths: Iterable[Path]) -> Iterable[Path]:
    """The files among the paths, and the .tspec files below the folders, each once."""
    seen: set[Path] = set()
    for path in paths:
        found = sorted(path.rglob("*.tspec")) if path.is_dir() else [path]
        for file in found:
            if file.is_file() and file.resolve() not in seen:
                seen.add(file.resolve())
                yield file


def format_one(path: Path, upgrading: bool = False) -> FormattedFile:
    """A file's text before and after formatting, and after the upgrade if it was requested."""
    from tspec.diagnostics import render
    from tspec.source import Source
    from tspec.syntax.editions import upgrade
    from tspec.syntax.format import format_file
    from tspec.syntax.parse import parse

    source = Source.read(path)
    text, parsed = source.text, parse(source)
    found = [d for d in parsed.diagnostics if d.severity == "error"]
    if upgrading:
        # A file that names no edition is upgraded to one that does.
        found = [d for d in found if d.code != "TS0010"]
    errors = tuple(render(d) for d in found)
    if errors:
        return FormattedFile(path, text, None, errors)
    if not upgrading:
        return FormattedFile(path, text, format_file(parsed.file))
    upgraded = upgrade(parsed.file)
    before = parsed.file.edition.year if parsed.file.edition else None
    after = upgraded.file.edition.year if upgraded.file.edition else None
    done = (
        (f"edition {before or 'not named'} -> {after}", *upgraded.done) if before != after else ()
    )
    return FormattedFile(path, text, format_file(upgraded.file), done=done)


def unified(outcome: FormattedFile, done: str = "formatted") -> str:
    """The change of a file as a patch."""
    lines = difflib.unified_diff(
        _lines(outcome.before),
        _lines(outcome.after or ""),
        visible(str(outcome.path)),
        visible(f"{outcome.path} ({done})"),
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def _lines(text: str) -> list[str]:
    """The lines of a file with their ends. `splitlines` ends lines at other characters too."""
    return re.findall(r"[^\n]*\n|[^\n]+$", text)


@dataclass(frozen=True, slots=True)
class FileCounts:
    """The numbers of files that were checked, changed, not parsed, and excluded."""

    files: int
    changed: int
    broken: int
    excluded: int = 0


def summary(counts: FileCounts, dry: bool) -> str:
    """One line: how many files were changed, left unchanged and not parsed."""
    would = "would be " if dry else ""
    parts = [
        f"{_files(number)} {what}"
        for number, what in (
            (counts.changed, f"{would}reformatted"),
            (
                counts.files - counts.changed - counts.broken,
                "already formatted" if dry else "left unchanged",
            ),
            (counts.broken, "with errors"),
            (counts.excluded, "excluded"),
        )
        if number
    ]
    return ", ".join(parts)


def _files(number: int) -> str:
    return f"{number} file{'' if number == 1 else 's'}"
