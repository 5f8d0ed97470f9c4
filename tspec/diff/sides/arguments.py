"""Reads the arguments of `tspec diff`: files, folders, modules, git revisions, or git's own call."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from tspec.diff.sides.revisions import (
    commit_of,
    laid_out,
    merge_base,
    repository,
    specs_of,
)
from tspec.diff.sides.side import Side, Unreadable, load_side

DRIVER_ARGUMENTS = (7, 9)
"""git calls a driver with path, old file, hex and mode, new file, hex and mode; two more if renamed."""


class WrongCall(Exception):
    """The arguments do not name two sides to compare."""


@dataclass(frozen=True, slots=True)
class Sides:
    """Both sides, loaded. `left_out`: files that are wrong on both sides alike, and not compared."""

    old: Side
    new: Side
    left_out: tuple[str, ...] = ()


def is_drivers_call(arguments: Sequence[str]) -> bool:
    """True if git calls tspec as its external diff driver."""
    return len(arguments) in DRIVER_ARGUMENTS and all(
        mode == "." or (mode.isdigit() and len(mode) == 6) for mode in (arguments[3], arguments[6])
    )


def from_driver(arguments: Sequence[str]) -> Sides:
    """The two files that git lays out. Raises Unreadable."""
    path, old, new = arguments[0], Path(arguments[1]), Path(arguments[4])
    later = arguments[7] if len(arguments) == 9 else path
    sides = []
    for name, file, shown in (("old", old, f"a/{path}"), ("new", new, f"b/{later}")):
        paths = [] if str(file) == "/dev/null" else [file]
        sides.append(load_side(name, paths, project=Path.cwd(), shown={str(file): shown}))
    return Sides(sides[0], sides[1])


def sides_of(arguments: Sequence[str]) -> Sides:
    """The two sides: two paths, each perhaps of a revision; two revisions; or a revision and the
    working folder. Raises WrongCall, NoRevision and Unreadable.
    """
    first, *rest = arguments
    revisions = first.partition(":")[0]
    if not Path(first).exists() and ".." in revisions and not first.startswith("."):
        return _range(first, rest)
    if len(arguments) == 2 and not _is_revision(first) and not _is_revision(rest[0]):
        with ExitStack() as stack:
            return Sides(_side_of(first, stack), _side_of(rest[0], stack))
    if not _is_revision(first):
        if len(arguments) < 2:
            raise WrongCall(f"`{first}` is no revision, and there is nothing to compare it with")
        raise WrongCall(f"`{first}` is no revision: compare two paths, or revisions of some")
    if rest and _is_revision(rest[0]):
        return _of_revisions(first, rest[0], rest[1:])
    return _of_revisions(first, None, rest)


def _side_of(word: str, stack: ExitStack) -> Side:
    """A path, module or pack; or `REV:PATH`, as git writes a file or folder of a revision."""
    revision, colon, path = word.partition(":")
    if not colon or Path(word).exists() or commit_of(revision) is None:
        return load_side(word, [Path(word)])
    top = repository()
    if path.startswith(("./", "../")):
        path = str(_within(top, Path(path)))
    inside = Path(posixpath.normpath(path))
    if inside.is_absolute() or ".." in inside.parts:
        raise WrongCall(f"`{path}` lies outside of the repository")
    folder = stack.enter_context(laid_out(specs_of(revision)))
    if not (folder / inside).exists():
        raise WrongCall(f"there is no `{inside}` in `{revision}`")
    shown = {f"{folder}/": f"{revision}:"}
    return load_side(revision, [folder / inside], project=folder, shown=shown)


def _is_revision(word: str) -> bool:
    """A path is a path first, as git has it."""
    if Path(word).exists():
        return False
    return commit_of(word) is not None


def _range(word: str, paths: Sequence[str]) -> Sides:
    """`A..B`, or `A...B`: the changes of B since its merge base with A. Either side may be left
    out: HEAD.
    """
    dots = "..." if "..." in word else ".."
    old, _, new = word.partition(dots)
    old, new = old or "HEAD", new or "HEAD"
    for each in (old, new):
        if commit_of(each) is None:
            raise WrongCall(f"there is no file and no revision `{each}`")
    if dots == "...":
        old = merge_base(old, new)
    return _of_revisions(old, new, paths)


def _of_revisions(old: str, new: str | None, paths: Sequence[str]) -> Sides:
    """The two sides, each with the files and modules of its revision. For `new` None, it is the
    working folder.
    """
    top = repository()
    with ExitStack() as stack:
        places = []
        for revision in (old, new):
            if revision is None:
                places.append((top, "", "the folder"))
                continue
            folder = stack.enter_context(laid_out(specs_of(revision)))
            places.append((folder, f"{revision}:", revision))
        wanted = [_within(top, Path(path)) for path in paths] or [Path()]
        return _loaded(places, wanted)


def _within(top: Path, path: Path) -> Path:
    try:
        return path.resolve().relative_to(top.resolve())
    except ValueError:
        raise WrongCall(f"`{path}` lies outside of the repository") from None


def _loaded(places: Sequence[tuple[Path, str, str]], wanted: Sequence[Path]) -> Sides:
    """Both sides, without files that are wrong on both sides and the same."""
    files = [_files(folder, wanted) for folder, _, _ in places]
    if not files[0] and not files[1]:
        raise WrongCall(f"no .tspec file in {', '.join(str(each) for each in wanted)}")
    left_out: set[Path] = set()
    while True:
        try:
            old, new = (
                _side(place, [f for f in found if f not in left_out])
                for place, found in zip(places, files, strict=True)
            )
            return Sides(old, new, tuple(sorted(map(str, left_out))))
        except Unreadable as problem:
            alike = set(_wrong_alike(problem, places)) - left_out
            if not alike:
                raise
            left_out |= alike


def _side(place: tuple[Path, str, str], files: Sequence[Path]) -> Side:
    folder, shown, name = place
    instead: Mapping[str, str] = {f"{folder}/": shown}
    return load_side(name, [folder / each for each in files], project=folder, shown=instead)


def _files(folder: Path, wanted: Sequence[Path]) -> list[Path]:
    """The spec files that are asked for, from the top of the repository."""
    found: dict[Path, None] = {}
    for each in wanted:
        place = folder / each
        many = sorted(place.rglob("*.tspec")) if place.is_dir() else [place]
        for file in many:
            inside = file.relative_to(folder)
            hidden = any(part.startswith(".") for part in inside.parts)
            if file.is_file() and not hidden:
                found[inside] = None
    return list(found)


def _wrong_alike(problem: Unreadable, places: Sequence[tuple[Path, str, str]]) -> Iterator[Path]:
    """Files with the same errors on both sides. They contain no change."""
    for file in problem.files:
        for folder, _, _ in places:
            if Path(file).is_relative_to(folder):
                inside = Path(file).relative_to(folder)
                texts = [
                    (each / inside).read_bytes() if (each / inside).is_file() else None
                    for each, _, _ in places
                ]
                if texts[0] is not None and texts[0] == texts[1]:
                    yield inside
