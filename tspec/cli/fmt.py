"""`tspec fmt`: rewrite specs in the one canonical form, or say which are not in it."""

from __future__ import annotations

import difflib
import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tspec.cli.output import FAULT, FOUND, FOUND_NOTHING


@dataclass(frozen=True, slots=True)
class Outcome:
    """One file before and after; `after` is None if it has errors, which `errors` says."""

    path: Path
    before: str
    after: str | None
    errors: tuple[str, ...] = ()


def fmt(
    paths: Annotated[
        list[Path],
        typer.Argument(metavar="PATHS", exists=True, help="Spec files, or folders of them."),
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing; exit 1 if a file would change.")
    ] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="Write nothing; print what would change.")
    ] = False,
) -> None:
    """Rewrite spec files in their one canonical form."""
    files = list(spec_files(paths))
    if not files:
        raise typer.BadParameter(f"no .tspec file in {', '.join(map(str, paths))}")
    with uncollected():
        outcomes = [format_one(path) for path in files]
    changed = [o for o in outcomes if o.after is not None and o.after != o.before]
    for outcome in outcomes:
        for error in outcome.errors:
            typer.echo(f"{error}\n", err=True)
    for outcome in changed:
        if diff:
            typer.echo(unified(outcome), nl=False)
        elif check:
            typer.echo(f"would reformat {outcome.path}")
        else:
            outcome.path.write_bytes((outcome.after or "").encode())
    broken = sum(outcome.after is None for outcome in outcomes)
    typer.echo(summary(len(outcomes), len(changed), broken, dry=check or diff), err=True)
    if broken:
        raise typer.Exit(FAULT)
    raise typer.Exit(FOUND if changed and (check or diff) else FOUND_NOTHING)


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


def format_one(path: Path) -> Outcome:
    """A file's text before and after formatting."""
    from tspec.diagnostics import render
    from tspec.source import Source
    from tspec.syntax.format import format_file
    from tspec.syntax.parse import parse

    try:
        text = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as fault:
        # Source.read would put U+FFFD for what is no UTF-8, and writing that back would lose it.
        return Outcome(path, "", None, (f"tspec: {path} is no UTF-8 text (byte {fault.start})",))
    parsed = parse(Source(str(path), text))
    errors = tuple(render(d) for d in parsed.diagnostics if d.severity == "error")
    return Outcome(path, text, None if errors else format_file(parsed.file), errors)


def unified(outcome: Outcome, done: str = "formatted") -> str:
    """The difference that formatting, or whatever was done, makes, as a patch."""
    lines = difflib.unified_diff(
        outcome.before.splitlines(keepends=True),
        (outcome.after or "").splitlines(keepends=True),
        f"{outcome.path}",
        f"{outcome.path} ({done})",
    )
    return "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )


def summary(files: int, changed: int, broken: int, dry: bool) -> str:
    """One line: how many files were changed, left and not understood."""
    would = "would be " if dry else ""
    parts = [
        f"{_files(number)} {what}"
        for number, what in (
            (changed, f"{would}reformatted"),
            (files - changed - broken, "already formatted" if dry else "left unchanged"),
            (broken, "with errors"),
        )
        if number
    ]
    return ", ".join(parts)


def _files(number: int) -> str:
    return f"{number} file{'' if number == 1 else 's'}"
