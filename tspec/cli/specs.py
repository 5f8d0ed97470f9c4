"""The SPECS of a command: loaded, or complained about."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tspec.cli.output import FAULT

if TYPE_CHECKING:
    from tspec.resolve import Loaded
    from tspec.resolve.rules import Program

SpecsArgument = Annotated[
    list[Path],
    typer.Argument(
        metavar="SPECS",
        help="Spec files, folders of them, shipped modules (std.hygiene) or packs (specs/essentials).",
        show_default=False,
    ),
]


def load(specs: list[Path]) -> Program:
    """The program that SPECS say. What is wrong with them is printed; an error ends the command."""
    from tspec.resolve import load as load_paths

    program = refuse(load_paths(specs))
    if not program.rules:
        typer.echo(f"tspec: no rule in {', '.join(map(str, specs))}", err=True)
        raise typer.Exit(FAULT)
    return program


def refuse(loaded: Loaded) -> Program:
    """What was loaded, after what is wrong with it was printed; an error ends the command."""
    from tspec.diagnostics import render

    for diagnostic in loaded.diagnostics:
        typer.echo(f"{render(diagnostic)}\n", err=True)
    if loaded.program is None:
        errors = sum(d.severity == "error" for d in loaded.diagnostics)
        code = next(d.code for d in loaded.diagnostics if d.severity == "error")
        typer.echo(
            f"{errors} error{'' if errors == 1 else 's'}; `tspec explain {code}` says more",
            err=True,
        )
        raise typer.Exit(FAULT)
    return loaded.program
