"""Loads the SPECS of a command."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tspec.cli.output import FAULT, Format, Output, write_file, write_out
from tspec.cli.project import NO_CONFIG
from tspec.cli.say import BadParameter, say
from tspec.config.model import Config
from tspec.config.settings import RuleOverride

if TYPE_CHECKING:
    from tspec.diagnostics import Diagnostic
    from tspec.resolve import Loaded
    from tspec.resolve.program.rules import Program

SpecsArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="SPECS",
        help="Spec files, folders of them, shipped modules (std.hygiene) or packs (specs/essentials).",
        show_default="`specs` of the configuration",
    ),
]


def load(
    specs: list[Path] | None,
    project: Config = NO_CONFIG,
    settings: Sequence[RuleOverride] = (),
    output: Output | None = None,
    *,
    layouts: bool = True,
) -> Program:
    """The program in SPECS. Diagnostics are printed; an error ends the command.

    Without SPECS the project's are loaded. `settings` change single rules. Errors are findings in
    the format of `output`, if there is one. `layouts` are proved, but not in a job: each of its
    processes would prove them, and no rule reads them.
    """
    from tspec.resolve import load as load_paths

    wanted = specs_of(specs, project)
    loaded = load_paths(wanted, settings=settings)
    if not specs:
        loaded = replace(loaded, diagnostics=tuple(_in_configuration(loaded.diagnostics, project)))
    program = refuse(loaded, output, layouts=layouts)
    if not program.rules:
        number = len(program.off)
        off = f"; {number} {'is' if number == 1 else 'are'} off" if program.off else ""
        say(f"tspec: no rule in {', '.join(map(str, wanted))}{off}", err=True)
        raise typer.Exit(FAULT)
    return program


def _in_configuration(diagnostics: Iterable[Diagnostic], project: Config) -> Iterator[Diagnostic]:
    """Show diagnostics about a path of the configuration where the configuration names it."""
    named = {str(project.path(each)): number for number, each in enumerate(project.specs)}
    for diagnostic in diagnostics:
        place = project.places.get(("specs", named.get(diagnostic.source.path, -1)))
        if diagnostic.source.text or place is None or project.source is None:
            yield diagnostic
        else:
            yield replace(diagnostic, source=project.source, span=place)


def specs_of(specs: Sequence[Path] | None, project: Config) -> list[Path]:
    """The paths of the command line, or else the configured ones. Raises BadParameter for none."""
    found = list(specs or ()) or [project.path(each) for each in project.specs]
    if not found:
        raise BadParameter(
            "name spec files, folders, modules or packs, or set `specs` in the configuration",
            param_hint="SPECS",
        )
    return found


def refuse(loaded: Loaded, output: Output | None = None, *, layouts: bool = True) -> Program:
    """The loaded program, after its diagnostics were printed; an error ends the command.

    It is an error if the shards of a layout do not tile a tensor, where `layouts` are proved.
    """
    from tspec.diagnostics import render
    from tspec.layout.faults import checked

    loaded = checked(loaded) if layouts else loaded
    for diagnostic in loaded.diagnostics:
        say(f"{render(diagnostic)}\n", err=True)
    if loaded.program is None:
        errors = sum(d.severity == "error" for d in loaded.diagnostics)
        code = next(d.code for d in loaded.diagnostics if d.severity == "error")
        if output is not None:
            _write_errors(loaded, output)
        say(
            f"{errors} error{'' if errors == 1 else 's'}; `tspec explain {code}` says more",
            err=True,
        )
        raise typer.Exit(FAULT)
    return loaded.program


def _write_errors(loaded: Loaded, output: Output) -> None:
    """Write the diagnostics of wrong specs for programs that read findings; as text they are shown already."""
    from tspec.report.results import Results, from_diagnostic

    results = Results(tuple(from_diagnostic(each) for each in loaded.diagnostics))
    write_file(results, output)
    if output.output_format not in (None, Format.TEXT):
        write_out(results, output)
