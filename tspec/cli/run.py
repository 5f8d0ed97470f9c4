"""`tspec run SPECS… -- script.py ARGS…`: run a script with rules checked in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tspec.cli.given import GivenOption, given_values, simplified
from tspec.cli.options import spread
from tspec.cli.output import (
    FAULT,
    FOUND_NOTHING,
    AcceptedOnlyOption,
    Output,
    write,
)
from tspec.cli.project import Rules
from tspec.cli.record import refuse_recorded
from tspec.cli.script import script
from tspec.cli.specs import SpecsArgument, load

if TYPE_CHECKING:
    from tspec.report.findings import Report
    from tspec.resolve.rules import Program
    from tspec.run.start import Ran


RecordOption = Annotated[
    Path | None,
    typer.Option(
        "--record", metavar="DIR", file_okay=False, help="A folder to record the run into, too."
    ),
]


@spread
def run(  # noqa: PLR0913 (each is an option)
    ctx: typer.Context,
    output: Output,
    rules: Rules,
    specs: SpecsArgument = None,
    given: GivenOption = None,
    accepted_only: AcceptedOnlyOption = False,
    record: RecordOption = None,
) -> None:
    """Run a script, unedited, with rules checked in it, and report what violates them.

    A script that fails keeps its own exit status.
    """
    from tspec.run.start import run as run_script

    path, *arguments = script(ctx)
    if not Path(path).is_file():
        raise typer.BadParameter(f"there is no script {path}", ctx=ctx)
    if record is not None:
        refuse_recorded(record)
    known = given_values(given)
    program = load(specs, output.project, rules.settings(output.project), output)
    ran = run_script(simplified(program, known), path, arguments, known, record)
    if not ran.tells:
        raise typer.Exit(ran.status)
    found = built(program, ran)
    if accepted_only:
        found = found.without_drafts()
    code = write(found, program, output)
    if ran.status and not ran.stopped:
        raise typer.Exit(ran.status)
    if code == FOUND_NOTHING and found.faults:
        raise typer.Exit(FAULT)
    raise typer.Exit(code)


def built(program: Program, ran: Ran) -> Report:
    """The report on a run: its violations by cause, and the counts of all ranks."""
    from tspec.report.build import report
    from tspec.report.collect import tally

    counted = tuple(
        tally(rule.qualified, ran.counts.get(rule.qualified, {})) for rule in program.rules
    )
    found = report(program, replace(ran.verdicts, notes=()), counted)
    return replace(found, faults=faults(ran.verdicts.notes))


def faults(notes: Iterable[str]) -> tuple[str, ...]:
    """Faults of tspec's own, those that several ranks had alike (`rank 0: ...`) as one."""
    ranks: dict[str, list[str]] = {}
    for note in notes:
        rank, _, fault = note.partition(": ")
        ranks.setdefault(fault, []).append(rank.removeprefix("rank "))
    return tuple(
        f"{fault} [rank{'s' if len(on) > 1 else ''} {', '.join(on)}]" for fault, on in ranks.items()
    )
