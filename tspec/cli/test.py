"""`tspec test [PATHS]`: run the tests of rules, and measure what they cover."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tspec.cli.options import spread
from tspec.cli.output import FAULT, FOUND, FOUND_NOTHING, Format, Output, accepted, write_file

if TYPE_CHECKING:
    from tspec.report.results import Results
    from tspec.resolve.rules import Program
    from tspec.testing.suite import Suite

TestsArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="PATHS",
        help="Spec files, folders (`.test.tspec` files included), modules or packs.",
        show_default=".",
    ),
]


@spread
def test(
    output: Output,
    paths: TestsArgument = None,
    hooks: Annotated[
        bool, typer.Option("--hooks", help="Let generated hooks decide too (imports torch).")
    ] = False,
) -> None:
    """Run `test` declarations on their scripted or recorded traces."""
    from tspec.cli.test_results import results_of
    from tspec.testing.suite import run_all

    program = load_tests(paths or [Path(".")])
    suite = run_all(program, hooks=hooks)
    raise typer.Exit(write_suite(suite, results_of(suite, program), output))


def load_tests(paths: list[Path]) -> Program:
    """The program that PATHS say, with at least one test. What is wrong is printed and ends the command."""
    from tspec.cli.specs import refuse
    from tspec.resolve import load

    loaded = load(paths, tests=True)
    program = refuse(loaded)
    if not program.tests:
        typer.echo(f"tspec: no test in {', '.join(map(str, paths))}", err=True)
        raise typer.Exit(FAULT)
    return program


def write_suite(suite: Suite, results: Results, output: Output) -> int:
    """Write what the tests came to, and give the exit code."""
    results = accepted(results, output).results
    write_file(results, output)
    from tspec.cli.output import write_out

    write_out(results, output)
    text = output.output_format is Format.TEXT
    typer.echo(f"{chr(10) if results.results and text else ''}{suite.summary}", err=not text)
    if suite.faults:
        return FAULT
    return FOUND if results.results else FOUND_NOTHING
