"""`tspec record -o DIR -- script.py ARGS…`: run a script, and record what it does."""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tspec.cli.output import FAULT
from tspec.cli.say import BadParameter, say, warn
from tspec.cli.script import command_of, name_of

if TYPE_CHECKING:
    from tspec.record.destination import Destination

OutputOption = Annotated[
    Path,
    typer.Option("--output", "-o", metavar="DIR", help="The folder to record into."),
]
KeepGoingOption = Annotated[
    bool,
    typer.Option(
        "--keep-going",
        help="Run the script without a recording if the folder cannot be recorded into.",
    ),
]
UseOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--use", metavar="SPEC", help="A spec file whose own events and entities are watched too."
    ),
]


SizeOption = Annotated[
    str | None,
    typer.Option(
        "--max-trace-size",
        metavar="SIZE",
        help="End the recording at this size on disk, of all ranks together, such as 500MB.",
    ),
]


class Redact(StrEnum):
    """The parts of the data that are not stored."""

    PATHS = "paths"


RedactOption = Annotated[
    Redact | None,
    typer.Option(
        "--redact",
        help="Leave out of what is stored: `paths` are the files, lines and functions of the script, "
        "and its command.",
    ),
]


def destination(folder: Path, size: str | None, what: str, keep_going: bool) -> Destination | None:
    """The destination of a recording of `what`. Ends the command if `size` is malformed, or the
    folder cannot be recorded into.

    With `keep_going` the reason is printed and None returned.
    """
    from tspec.record.destination import Destination
    from tspec.record.folder import obstacle_to_a_new_one
    from tspec.trace.sizes import size_of

    try:
        limit = None if size is None else size_of(size)
    except ValueError as error:
        raise BadParameter(str(error), param_hint="--max-trace-size") from None
    why = obstacle_to_a_new_one(folder)
    if why is None:
        return Destination(folder, limit)
    if keep_going:
        warn(f"{folder} cannot be recorded into: {why}; {what} runs without a recording")
        return None
    warn(f"{folder} cannot be recorded into: {why}; name another, or run without one: --keep-going")
    raise typer.Exit(FAULT)


def record(
    ctx: typer.Context,
    output: OutputOption,
    use: UseOption = None,
    max_trace_size: SizeOption = None,
    keep_going: KeepGoingOption = False,
    redact: RedactOption = None,
) -> None:
    """Run a script, unedited, and record its steps, calls and state.

    The exit status is the script's own; 2 if nothing can be recorded into the folder, or a spec is wrong.
    """
    command = command_of(ctx)
    from tspec.config.read import project_of
    from tspec.record import RecordingError, record_script
    from tspec.runtime.messages.launch import launched
    from tspec.runtime.sources import Sources

    to = destination(output, max_trace_size, name_of(command), keep_going)
    if to is None:
        sys.stdout.flush()
        os.execv(sys.executable, [sys.executable, *command])
    folder = output.resolve()  # the script may go to another
    sources = Sources(project_of(Path.cwd()), redact is Redact.PATHS)
    try:
        status = record_script(to, command, use or (), sources)
    except RecordingError as error:
        say(str(error), err=True)
        raise typer.Exit(FAULT) from None
    if launched().reports:
        from tspec.trace.size import size_of_recording

        size = size_of_recording(folder)
        if size.ranks:
            say(f"recorded {size.words} to {output}", err=True)
        else:
            say("recorded nothing: the script failed before there was anything to record", err=True)
    raise typer.Exit(status)
