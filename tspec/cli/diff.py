"""`tspec diff OLD NEW`: what changed between two versions of a set of rules, and in which direction."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from tspec.cli.fmt import uncollected
from tspec.cli.output import FAULT, FOUND, FOUND_NOTHING
from tspec.cli.say import BadParameter, for_terminal, say
from tspec.printable import visible
from tspec.values import listed

if TYPE_CHECKING:
    from tspec.diff import Changes


class DiffFormat(StrEnum):
    """The formats of changes."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


DEFAULT = "loosened,removed"

MOST_FILES = 3
"""The greatest number of names of files in a line."""


def diff(
    versions: Annotated[
        list[str],
        typer.Argument(
            metavar="OLD NEW | A..B [PATHS] | REV [PATHS]",
            help="Two files, folders or modules (REV:PATH for those of a git revision); two "
            "revisions; or a revision and the working tree.",
            show_default=False,
        ),
    ],
    output_format: Annotated[
        DiffFormat, typer.Option("--output-format", help="How changes are written.")
    ] = DiffFormat.TEXT,
    fail_on: Annotated[
        str,
        typer.Option(
            "--fail-on",
            metavar="KINDS",
            help="Exit with 1 if there is a change of these kinds, or `none`. `milder`: less is "
            "done about a violation.",
        ),
    ] = DEFAULT,
) -> None:
    """Report which rules were tightened, loosened or rewritten.

    Where a claim or a condition changed, an example shows a value that one of the two accepts.
    """
    from tspec.diff import Unreadable, compare
    from tspec.diff.sides.arguments import WrongCall, is_drivers_call, sides_of
    from tspec.diff.sides.revisions import NoRevision

    kinds = chosen(fail_on)
    if is_drivers_call(versions):
        for_git(versions)
        return
    try:
        with uncollected():
            both = sides_of(versions)
            found = compare(both.old, both.new)
    except (WrongCall, NoRevision) as problem:
        say(f"tspec: {problem}", err=True)
        raise typer.Exit(FAULT) from None
    except Unreadable as problem:
        say(problem.rendered, err=True)
        raise typer.Exit(FAULT) from None
    if both.left_out:
        say(for_terminal(f"tspec: {_left_out([str(file) for file in both.left_out])}"), err=True)
    write(found, output_format)
    raise typer.Exit(FOUND if found.of(kinds) else FOUND_NOTHING)


def _left_out(files: Sequence[str]) -> str:
    """Files with errors are left out if they are the same on both sides; a few are named."""
    named = visible(listed(files, MOST_FILES))
    return f"left out, with errors and the same on both sides: {named} (`tspec lint FILE` names the errors)"


def chosen(fail_on: str) -> tuple[str, ...]:
    """The kinds of change that `--fail-on` names."""
    from tspec.diff import KINDS

    known = (*KINDS, "milder", "none")
    kinds = tuple(each.strip().replace("-", " ") for each in fail_on.split(",") if each.strip())
    for kind in kinds:
        if kind not in known:
            raise BadParameter(
                f"there is no kind of change `{kind}`; there are {', '.join(known)}",
                param_hint="--fail-on",
            )
    return kinds


def write(found: Changes, output_format: DiffFormat) -> None:
    """Write changes to standard output."""
    if output_format is DiffFormat.JSON:
        from tspec.diff.formats.json import as_json

        sys.stdout.write(as_json(found))
        return
    if output_format is DiffFormat.MARKDOWN:
        from tspec.diff.formats.markdown import as_markdown

        sys.stdout.write(as_markdown(found))
        return
    from rich.console import Console

    from tspec.diff.formats.terminal import print_changes

    print_changes(found, Console())


def for_git(arguments: Sequence[str]) -> None:
    """The diff driver for git: print the changes of one file.

    Git stops its diff at any exit status other than 0.
    """
    from tspec.diff import Unreadable, compare
    from tspec.diff.sides.arguments import from_driver

    say(f"tspec diff {arguments[0]}")
    try:
        both = from_driver(arguments)
    except Unreadable as problem:
        say(problem.rendered)
        return
    write(compare(both.old, both.new), DiffFormat.TEXT)
