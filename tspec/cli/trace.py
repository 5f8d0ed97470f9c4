"""`tspec trace show DIR`: the content of a recording."""

from pathlib import Path
from typing import Annotated

import typer

from tspec.cli.say import say

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def trace() -> None:
    """Inspect a recording."""


@app.command()
def show(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", exists=True, file_okay=False, help="A recording.")
    ],
) -> None:
    """Print what a recording holds: ranks, steps, calls, subjects, sizes."""
    from tspec.trace.show import summary, text

    say(text(summary(folder)), form="titled")
