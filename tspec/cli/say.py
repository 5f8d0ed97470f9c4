"""Prints text of commands. Only this module escapes text for a terminal or the log of a CI."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Mapping
from typing import Any, Literal, TextIO

import typer

from tspec.printable import json_text, lines, visible


class BadParameter(typer.BadParameter):
    """A usage error.

    Its message may contain what the user gave, escaped. Commands raise this class, never typer's.
    """

    def __init__(self, message: str, **options: Any) -> None:
        super().__init__(visible(message), **options)


Form = Literal["plain", "titled", "patch", "good", "bad"]
"""The form of a text: `titled` begins with its title, `patch` is a unified diff, `good` and `bad`
are outcomes.
"""


def say(text: str, *, err: bool = False, nl: bool = True, form: Form = "plain") -> None:
    """Print lines to standard output, or with `err` to standard error, on a terminal in the colours of its form.

    Control characters and workflow commands of a CI are printed as escapes. Texts within a line,
    whose line ends must show too, go through `tspec.printable.visible` before.
    """
    stream = sys.stderr if err else sys.stdout
    typer.echo(coloured(lines(text), stream, form), err=err, nl=nl)


def progress(text: str) -> None:
    """Print to standard error what a command does that takes long, if it is a terminal."""
    if sys.stderr.isatty():
        say(text, err=True)


def coloured(text: str, stream: TextIO, form: Form = "plain") -> str:
    """Text in the colours of its form and its severities, where the stream is a terminal that shows them.

    `text` is escaped already. Without a terminal, or where NO_COLOR is set, it stays as it is.
    """
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty():
        return text
    for pattern, colour in (*_FORMS[form], *_SEVERITIES):
        text = pattern.sub(f"\x1b[{colour}m\\g<0>\x1b[0m", text)
    return text


_SEVERITIES = tuple(
    (re.compile(rf"(?:^|(?<=: )){name}(?:\[TS\d{{4}}\])?(?=: )", re.MULTILINE), colour)
    for name, colour in (("error", "1;31"), ("warning", "1;33"), ("draft", "1;36"), ("note", "2"))
)
_FORMS: Mapping[Form, tuple[tuple[re.Pattern[str], str], ...]] = {
    "plain": (),
    "titled": ((re.compile(r"\A.+"), "1"),),
    "patch": (
        (re.compile(r"^(?:---|\+\+\+) .+", re.MULTILINE), "1"),
        (re.compile(r"^@@.+", re.MULTILINE), "36"),
        (re.compile(r"^-(?!-- ).*", re.MULTILINE), "31"),
        (re.compile(r"^\+(?!\+\+ ).*", re.MULTILINE), "32"),
    ),
    "good": ((re.compile(r"^.+", re.MULTILINE), "1;32"),),
    "bad": ((re.compile(r"^.+", re.MULTILINE), "1;31"),),
}
"""Form -> patterns, each with its colour."""


def say_json(value: object) -> None:
    """Print a value as JSON to standard output."""
    typer.echo(json_text(value))


def warn(message: str) -> None:
    """Print a message of the command to standard error, in lines as wide as the terminal."""
    say(in_lines(f"tspec: {message}"), err=True)


def for_terminal(text: str) -> str:
    """A text for standard error: in lines as wide as the terminal; unchanged in a log, where it can be searched."""
    return "\n".join(map(in_lines, text.splitlines())) if sys.stderr.isatty() else text


def in_lines(sentence: str) -> str:
    """A sentence in lines as wide as the terminal. Control characters are escaped."""
    return textwrap.fill(
        visible(sentence),
        shutil.get_terminal_size().columns,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
