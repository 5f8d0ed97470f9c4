"""`tspec run SPECS… -- script.py ARGS…`: run a script and check rules in it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tspec.cli.equivalence import EquivalenceOptions, check, refuse_rule_options
from tspec.cli.given import GivenOption, given_values, simplified
from tspec.cli.options import spread
from tspec.cli.output import (
    FAULT,
    FOUND,
    FOUND_NOTHING,
    AcceptedOnlyOption,
    Output,
    VerboseOption,
    write,
)
from tspec.cli.project import RuleOptions
from tspec.cli.record import KeepGoingOption, Redact, RedactOption, SizeOption, destination
from tspec.cli.say import BadParameter, say, warn
from tspec.cli.script import command_of, name_of
from tspec.cli.specs import SpecsArgument, load
from tspec.schedule import canonical, schedule_of

if TYPE_CHECKING:
    from tspec.config.model import RunSection
    from tspec.report.findings import Report
    from tspec.resolve.program.rules import Program
    from tspec.run.start import RunResult


RecordOption = Annotated[
    Path | None,
    typer.Option("--record", metavar="DIR", help="Record the run into this folder, too."),
]


class FailOn(StrEnum):
    """The least severe findings that make the command exit with 1."""

    WARNING = "warning"
    ERROR = "error"
    NEVER = "never"


FailOnOption = Annotated[
    FailOn | None,
    typer.Option(
        "--fail-on",
        help="Exit with 1 on findings from this severity up. Drafts are warnings; findings "
        "of rules that may skip an update or end the job are errors.",
        show_default="`run.fail-on` of the configuration, else error",
    ),
]


RequireInstancesOption = Annotated[
    bool | None,
    typer.Option(
        "--require-instances/--allow-no-instances",
        help="Exit with 1 if all instances are idle or there is none, as in a script that trains nothing.",
        show_default="`run.require-instances` of the configuration, else allowed",
    ),
]


def _schedule(text: str) -> str:
    try:
        return canonical(text)
    except ValueError as wrong:
        raise BadParameter(str(wrong)) from None


CheckStepsOption = Annotated[
    str | None,
    typer.Option(
        "--check-steps",
        metavar="N/M",
        callback=lambda text: None if text is None else _schedule(text),
        help="After the first 100 steps, check rules in N of each M steps, which costs less: 25/500; 1/1 for all.",
        show_default="`run.check-steps` of the configuration, else all steps",
    ),
]


@spread
def run(  # noqa: PLR0913 (each is an option)
    ctx: typer.Context,
    output: Output,
    rules: RuleOptions,
    specs: SpecsArgument = None,
    given: GivenOption = None,
    accepted_only: AcceptedOnlyOption = False,
    fail_on: FailOnOption = None,
    require_instances: RequireInstancesOption = None,
    check_steps: CheckStepsOption = None,
    record: RecordOption = None,
    max_trace_size: SizeOption = None,
    keep_going: KeepGoingOption = False,
    redact: RedactOption = None,
    verbose: VerboseOption = False,
    *,
    sides: EquivalenceOptions,
) -> None:
    """Run a script, unedited, and report which rules it violates.

    A script keeps its own exit status if it fails, or if all findings are warnings; errors exit with 1. Findings are on disk as soon as they are known, and are reported however the script ends.
    With --equivalence the script is run on one rank and on several, and the status is 0, 1 or 2.
    """
    command = command_of(ctx)
    if sides.equivalence is not None:
        refuse_rule_options(ctx)
        check(sides.equivalence, sides, specs, command, record, output)
    sides.refuse_alone()
    from tspec.run.start import running
    from tspec.runtime.sources import Sources

    if record is None and max_trace_size is not None:
        raise BadParameter("nothing is recorded without --record", param_hint="--max-trace-size")
    to = (
        None
        if record is None
        else destination(record, max_trace_size, name_of(command), keep_going)
    )
    known = given_values(given)
    program = load(specs, output.project, rules.settings(output.project), output, layouts=False)
    demands = output.project.run
    if fail_on is not None:
        demands = replace(demands, fail_on=fail_on.value)
    if require_instances is not None:
        demands = replace(demands, require_instances=require_instances)
    if check_steps is not None:
        demands = replace(demands, check_steps=check_steps)
    # Without values to specialise for, the proofs would take longer than they save in one run.
    simple = simplified(program, known) if known else program
    sources = Sources(output.project.root, redact is Redact.PATHS)
    with running(simple, command, known, to, sources, demands.check_steps) as ran:
        code = ran.status
        if ran.tells:
            found = _report(ran, program, accepted_only)
            if demands.check_steps:
                note = schedule_of(demands.check_steps).note
                found = replace(found, notes=(*found.notes, note))
            told = write(found, program, output, demands.fail_on, verbose)
            code = _status(ran, found, told, demands)
        if ran.left is not None:
            say(f"tspec: what the ranks on this machine found is kept in {ran.left}", err=True)
    raise typer.Exit(code)


def _report(ran: RunResult, program: Program, accepted_only: bool) -> Report:
    """The report on a run."""
    if ran.again:
        say(f"tspec: {ran.again}", err=True)
    found = built(program, ran)
    return found.without_drafts() if accepted_only else found


def _status(ran: RunResult, found: Report, code: int, demands: RunSection) -> int:
    """The exit status: a script's that failed; else what the report (`code`) or `demands` ask for.

    A job that a rule stopped did not end, so `--fail-on never` does not make it a success.
    """
    if ran.status and (not ran.stopped or demands.fail_on == "never"):
        return ran.status
    if code == FOUND_NOTHING and found.faults:
        return FAULT
    if code == FOUND_NOTHING and found.nothing_checked and demands.require_instances:
        warn(f"{found.nothing_checked}, and --require-instances asks for one that is not idle")
        return FOUND
    return code


def built(program: Program, ran: RunResult) -> Report:
    """The report on a run: its violations grouped by cause, and the counts of all ranks."""
    from tspec.report.build import report
    from tspec.report.collect import tally

    counted = tuple(
        tally(name, ran.counts.get(name, {}), ran.reasons.get(name, {}))
        for name in (rule.qualified for rule in program.rules)
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
