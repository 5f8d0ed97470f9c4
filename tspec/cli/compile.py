"""`tspec compile SPECS… -o hooks.py`: rules as Python that a person can read."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tspec.cli.given import GivenOption, given_values, simplified
from tspec.cli.specs import SpecsArgument, load


def compile_specs(
    specs: SpecsArgument,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", dir_okay=False, help="The Python file."),
    ],
    target: Annotated[str, typer.Option("--target", help="What the hooks are for.")] = "torch",
    given: GivenOption = None,
) -> None:
    """Compile rules to Python hooks for a training job."""
    from tspec.targets.compile import compile_program

    known = given_values(given)
    program = simplified(load(specs), known)
    text = compile_program(program, target=target, given=known)
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_text(text, encoding="utf-8")
    count = len(program.rules)
    typer.echo(f"{count} rule{'' if count == 1 else 's'} compiled to {output}")
