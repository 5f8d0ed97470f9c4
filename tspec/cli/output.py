"""How commands hand over what they found: to standard output in a format, and to a file in one."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tspec.report.findings import Report
    from tspec.report.results import Results
    from tspec.resolve.rules import Program

FOUND_NOTHING, FOUND, FAULT = 0, 1, 2
"""Exit codes."""


class Format(StrEnum):
    """How findings are written."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    JUNIT = "junit"
    GITHUB = "github"


FormatOption = Annotated[
    Format, typer.Option("--output-format", help="How findings are written to standard output.")
]
ReportOption = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FILE",
        dir_okay=False,
        help="Write the findings to FILE too (.json, .sarif, .xml for JUnit, .txt).",
    ),
]
ReportFormatOption = Annotated[
    Format | None,
    typer.Option("--report-format", help="How FILE is written, if its name does not say it."),
]


@dataclass(frozen=True, slots=True)
class Output:
    """Where findings go; with `@spread` (`tspec.cli.options`) its fields are a command's options."""

    output_format: FormatOption = Format.TEXT
    report: ReportOption = None
    report_format: ReportFormatOption = None


AcceptedOnlyOption = Annotated[
    bool, typer.Option("--accepted-only", help="Leave out what only draft rules found.")
]


def write(report: Report, program: Program, output: Output) -> int:
    """Write a report on a run, and give the exit code that it asks for."""
    from rich.console import Console

    from tspec.report.results import from_report
    from tspec.report.terminal import print_counts, print_report

    results = from_report(report, program)
    write_file(results, output)
    if output.output_format is Format.TEXT:
        print_report(report, program, Console())
    else:
        write_out(results, output)
        print_counts(report, Console(stderr=True))
    return FOUND if report.findings else FOUND_NOTHING


def write_results(results: Results, output: Output) -> int:
    """Write results to standard output and, if asked for, to a file; give the exit code.

    Commands that print their text themselves call `write_file` and `write_out` instead.
    """
    write_file(results, output)
    write_out(results, output)
    return FOUND if results.results else FOUND_NOTHING


def write_out(results: Results, output: Output) -> None:
    """Write results to standard output."""
    from tspec.report.formats import written

    sys.stdout.write(written(results, output.output_format.value))


def write_file(results: Results, output: Output) -> None:
    """Write results to the file that was named, if one was: as it is called, else as JSON."""
    from tspec.report.formats import SUFFIXES, written

    file = output.report
    if file is None:
        return
    asked = output.report_format
    chosen = asked.value if asked else SUFFIXES.get(file.suffix.lower(), "json")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(written(results, chosen), encoding="utf-8")
