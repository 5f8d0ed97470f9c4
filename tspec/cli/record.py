"""`tspec record -o DIR -- script.py ARGS…`: run a script, and record what it does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tspec.cli.output import FAULT
from tspec.cli.script import script as script_of

OutputOption = Annotated[
    Path,
    typer.Option(
        "--output", "-o", metavar="DIR", file_okay=False, help="The folder to record into."
    ),
]
UseOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--use", metavar="SPEC", help="A spec file whose own events and entities are watched too."
    ),
]


def record(ctx: typer.Context, output: OutputOption, use: UseOption = None) -> None:
    """Run a script as it is, and record what it does: ranks, steps, calls, state.

    The exit status is the script's own.
    """
    from tspec.record import RecordingError, record_script

    script, *args = script_of(ctx)
    if not Path(script).is_file():
        raise typer.BadParameter(f"there is no file {script}", ctx=ctx)
    refuse_recorded(output)
    try:
        status = record_script(output, script, args, use or ())
    except RecordingError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(FAULT) from None
    raise typer.Exit(status)


def refuse_recorded(folder: Path) -> None:
    """End the command if the folder holds a recording already."""
    if any(folder.glob("*.arrow")) and not _is_started_by_a_launcher():
        typer.echo(f"tspec: {folder} holds a recording already; choose another folder", err=True)
        raise typer.Exit(FAULT)


def _is_started_by_a_launcher() -> bool:
    """Under torchrun other ranks record into the same folder; each stream is checked by itself."""
    import os

    return int(os.environ.get("WORLD_SIZE", "1")) > 1
