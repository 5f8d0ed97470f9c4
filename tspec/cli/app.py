"""The command `tspec`: its subcommands, and the only place that catches internal errors."""

import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from tspec import __version__
from tspec.cli import (
    check,
    compile,
    diff,
    explain,
    fmt,
    infer,
    layout,
    lint,
    mutate,
    packs,
    preflight,
    record,
    run,
    test,
    trace,
    why,
)
from tspec.cli.say import for_terminal, say
from tspec.cli.script import ScriptCommand

PYDANTIC = "Value error, "
"""The prefix that pydantic, with which typer reads options, puts before a message that is complete
without it.
"""


class Commands(TyperGroup):
    """All commands. Usage errors of every command are handled here."""

    def invoke(self, ctx: Any) -> Any:
        """Run the named command. Raises BadParameter for a usage error."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as wrong:
            wrong.message = wrong.message.removeprefix(PYDANTIC)
            head = f"Error: {wrong.format_message()}".removesuffix(wrong.message)
            wrong.message = for_terminal(head + wrong.message)[len(head) :]
            raise


app = typer.Typer(
    name="tspec",
    cls=Commands,
    help="Rules for training jobs: record a good run, draft rules from it, catch silent bugs.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


app.command()(fmt.fmt)
app.command(cls=ScriptCommand)(record.record)
app.command(cls=ScriptCommand)(run.run)
app.command(cls=ScriptCommand)(infer.infer)
app.command(cls=ScriptCommand)(preflight.preflight)
app.command("compile")(compile.compile_specs)
app.command()(check.check)
app.command()(test.test)
app.command()(mutate.mutate)
app.command()(why.why)
app.command()(explain.explain)
app.command()(lint.lint)
app.command()(diff.diff)
app.command()(packs.packs)
app.add_typer(layout.app, name="layout")
app.add_typer(trace.app, name="trace")


def print_version(wanted: bool) -> None:
    """Print the version and exit, if `--version` was given."""
    if wanted:
        say(f"tspec {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=print_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Options of `tspec` itself."""


def main() -> None:
    """Run the command line on `sys.argv`.

    Exit codes: 0 nothing found, 1 findings, 2 a bad spec, a usage error or an internal error of
    tspec.
    """
    try:
        app()
    except Exception as fault:
        if os.environ.get("TSPEC_DEBUG"):
            raise
        if _is_for_the_user(fault):
            say(for_terminal(f"tspec: {_message(fault)}"), err=True)
            sys.exit(2)
        first = next(iter(str(fault).splitlines()), "")
        say(
            f"tspec: internal error: {type(fault).__name__}: {first}\n"
            "This is a fault of tspec, not of your files. Run it again with TSPEC_DEBUG=1 and\n"
            "report what it prints, with the file that you gave it.",
            err=True,
        )
        sys.exit(2)


def _is_for_the_user(fault: Exception) -> bool:
    """Whether the exception's own text explains a fault in the user's input."""
    from tspec.trace.errors import TraceError

    if isinstance(fault, TraceError | OSError):
        return True
    # Their rooms import torch; a fault of theirs can come only from a room that is imported.
    names = (("tspec.record", "RecordingError"), ("tspec.targets.compile", "CannotCompile"))
    known = [getattr(sys.modules[room], name) for room, name in names if room in sys.modules]
    return isinstance(fault, tuple(known))


def _message(fault: Exception) -> str:
    if isinstance(fault, OSError) and fault.strerror:
        return f"{fault.filename}: {fault.strerror}" if fault.filename else fault.strerror
    return str(fault)
