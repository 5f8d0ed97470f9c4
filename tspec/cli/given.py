"""`--given tp=8,pp=1`: values that are known before a job runs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

from tspec.cli.say import BadParameter, say

if TYPE_CHECKING:
    from tspec.resolve.program.rules import Program

GivenOption = Annotated[
    list[str] | None,
    typer.Option(
        "--given", metavar="NAME=VALUE,…", help="Sizes and flags of the job, such as tp=1."
    ),
]

Given = dict[str, bool | int | str]

_NEXT = re.compile(r",(?=[\w.]+=)")
"""The comma between two values."""


def given_values(given: list[str] | None) -> Given:
    """The names and values of `tp=8` or `tp=8,pp=4`.

    Raises BadParameter for malformed text or a repeated name.
    """
    values: Given = {}
    for item in (each for several in given or () for each in _NEXT.split(several)):
        name, equals, text = item.partition("=")
        if not (name and equals and text):
            raise BadParameter(f"`{item}` is no NAME=VALUE", param_hint="--given")
        if name in values:
            raise BadParameter(f"`{name}` is given twice", param_hint="--given")
        values[name] = value(text)
    return values


def value(text: str) -> bool | int | str:
    """A whole number or truth value where the text is one, else the text."""
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        return text


def simplified(program: Program, given: Given) -> Program:
    """The program without parts that follow from the rest or from the given values; notes are
    printed.

    Names that no rule reads are refused: a typo would pass silently.
    """
    from tspec.logic import simplify_program

    refuse_unread(program, given)
    simpler, notes = simplify_program(program, given)
    for note in notes:
        say(f"note: {note.message}", err=True)
    return simpler


def refuse_unread(program: Program, given: Given) -> None:
    """Raises BadParameter for a name that is neither a group nor known at every moment."""
    from tspec.diagnostics import did_you_mean

    vocabulary = program.vocabulary
    known = [g.name for g in vocabulary.groups] + [c.name for c in vocabulary.context]
    for name in given:
        if name not in known:
            hint = did_you_mean(name, known)
            raise BadParameter(
                f"no group or context is called `{name}`" + (f"; {hint}" if hint else ""),
                param_hint="--given",
            )
