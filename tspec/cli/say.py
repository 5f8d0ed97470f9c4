"""How commands print text: the one place that escapes it for a terminal or the log of a CI."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from typing import Any, TextIO

import typer

from tspec.printable import json_text, lines, visible


class BadParameter(typer.BadParameter):
    """A wrong call, whose message may hold what was given. Commands raise this one, never typer's own."""

    def __init__(self, message: str, **options: Any) -> None:
        super().__init__(visible(message), **options)


def say(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print lines to standard output, or with `err` to standard error.

    Control characters and workflow commands of a CI are printed as escapes. Texts within a line,
    whose line ends must show too, go through `tspec.printable.visible` before.
    """
    typer.echo(coloured(lines(text), sys.stderr if err else sys.stdout), err=err, nl=nl)


def coloured(text: str, stream: TextIO) -> str:
    """Text with its severities in the colours of reports, where the stream is a terminal that shows them.

    `text` is escaped already. Without a terminal, or where NO_COLOR is set, it stays as it is.
    """
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not stream.isatty():
        return text
    return _SEVERITY.sub(lambda found: f"\x1b[{_COLOURS[found[1]]}m{found[0]}\x1b[0m", text)


_COLOURS = {"error": "1;31", "warning": "1;33", "draft": "1;36", "note": "2"}
_SEVERITY = re.compile(
    r"(?:^|(?<=: ))(error|warning|draft|note)(?:\[TS\d{4}\])?(?=: )", re.MULTILINE
)


def say_json(value: object) -> None:
    """Print a value as JSON to standard output."""
    typer.echo(json_text(value))


def warn(message: str) -> None:
    """Print a message of the command to standard error, in lines as wide as the terminal."""
    say(
        textwrap.fill(
            visible(f"tspec: {message}"),
            shutil.get_terminal_size().columns,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        ),
        err=True,
    )
