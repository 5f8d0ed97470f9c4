"""`tspec check SPECS… --trace DIR`: evaluate rules over a recording."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from tspec.cli.options import spread
from tspec.cli.output import (
    AcceptedOnlyOption,
    Output,
    VerboseOption,
    write,
)
from tspec.cli.project import RuleOptions
from tspec.cli.specs import SpecsArgument, load

TraceOption = Annotated[
    Path, typer.Option("--trace", metavar="DIR", exists=True, file_okay=False, help="A recording.")
]
CompleteOption = Annotated[
    bool | None,
    typer.Option(
        "--require-complete/--allow-incomplete",
        help="Exit with 2 if a rank's recording is missing, or ends before the run.",
        show_default="`check.require-complete` of the configuration, else allowed",
    ),
]


@spread
def check(  # noqa: PLR0913 (each is an option)
    trace: TraceOption,
    output: Output,
    rules: RuleOptions,
    specs: SpecsArgument = None,
    accepted_only: AcceptedOnlyOption = False,
    require_complete: CompleteOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Check rules against a recording, and report violations."""
    from tspec.check import check as decide
    from tspec.report.build import report as build

    program = load(specs, output.project, rules.settings(output.project), output)
    if require_complete is None:
        require_complete = output.project.check.require_complete
    found = replace(build(program, decide(program, trace)), complete_required=require_complete)
    if accepted_only:
        found = found.without_drafts()
    raise typer.Exit(write(found, program, output, verbose=verbose))
