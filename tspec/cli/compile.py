"""`tspec compile SPECS… -o hooks.py`: compile rules to readable Python."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tspec.cli.given import GivenOption, given_values, simplified
from tspec.cli.options import spread
from tspec.cli.output import refuse_no_folder
from tspec.cli.project import Project, RuleOptions
from tspec.cli.say import say
from tspec.cli.specs import SpecsArgument, load


@spread
def compile_specs(
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", dir_okay=False, help="The Python file."),
    ],
    project: Project,
    rules: RuleOptions,
    target: Annotated[
        str,
        typer.Option(
            "--target", metavar="NAME", help="The framework of the job: torch or megatron."
        ),
    ] = "torch",
    given: GivenOption = None,
    specs: SpecsArgument = None,
) -> None:
    """Compile rules to Python hooks for a training job."""
    refuse_no_folder(output)
    from tspec.targets.compile import compile_program

    known = given_values(given)
    program = simplified(load(specs, project.project, rules.settings(project.project)), known)
    text = compile_program(program, target=target, given=known, root=project.project.root)
    output.write_text(text, encoding="utf-8")
    count = len(program.rules)
    say(f"{count} rule{'' if count == 1 else 's'} compiled to {output}")
