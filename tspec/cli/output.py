"""How `check` and `run` hand over what they found: to the terminal, as JSON, and to a file."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from tspec.report.findings import Report
    from tspec.resolve.rules import Program

FOUND_NOTHING, FOUND, FAULT = 0, 1, 2
"""Exit codes."""


class Format(StrEnum):
    """How findings are written."""

    TEXT = "text"
    JSON = "json"


FormatOption = Annotated[
    Format, typer.Option("--output-format", help="How findings are written to standard output.")
]
ReportOption = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FILE",
        dir_okay=False,
        help="Write the findings to FILE as JSON too; standard output may be the script's.",
    ),
]
AcceptedOnlyOption = Annotated[
    bool, typer.Option("--accepted-only", help="Leave out what only draft rules found.")
]


def write(report: Report, program: Program, output_format: Format, file: Path | None) -> int:
    """Write a report, and give the exit code that it asks for."""
    from rich.console import Console

    from tspec.report.as_json import as_json
    from tspec.report.terminal import print_counts, print_report

    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(as_json(report), encoding="utf-8")
    if output_format is Format.JSON:
        sys.stdout.write(as_json(report))
        print_counts(report, Console(stderr=True))
    else:
        print_report(report, program, Console())
    return FOUND if report.findings else FOUND_NOTHING
