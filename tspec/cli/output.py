"""How commands hand over what they found: to standard output in a format, and to a file in one."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tspec.cli.project import Project

if TYPE_CHECKING:
    from tspec.report.baseline import Applied
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
    Format | None,
    typer.Option("--output-format", help="How findings are written to standard output."),
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
BaselineOption = Annotated[
    Path | None,
    typer.Option(
        "--baseline",
        metavar="FILE",
        dir_okay=False,
        help="Findings that are accepted for now; they are counted, and not reported.",
    ),
]
UpdateBaselineOption = Annotated[
    bool,
    typer.Option("--update-baseline", help="Write what is found now into the baseline."),
]


@dataclass(frozen=True, slots=True)
class Output(Project):
    """Where findings go; with `@spread` (`tspec.cli.options`) its fields are a command's options.

    What the command line leaves open is then as the project's configuration says.
    """

    output_format: FormatOption = None
    report: ReportOption = None
    report_format: ReportFormatOption = None
    baseline: BaselineOption = None
    update_baseline: UpdateBaselineOption = False

    def settled(self) -> Output:
        """With what the configuration says, where there is one."""
        found = Project.settled(self)
        baseline = found.baseline
        if baseline is None and found.project.baseline is not None:
            baseline = found.project.inside(found.project.baseline)
        chosen = found.output_format or Format(found.project.output_format)
        return replace(found, output_format=chosen, baseline=baseline)


AcceptedOnlyOption = Annotated[
    bool, typer.Option("--accepted-only", help="Leave out what only draft rules found.")
]


def write(report: Report, program: Program, output: Output) -> int:
    """Write a report on a run, and give the exit code that it asks for."""
    from rich.console import Console

    from tspec.report.baseline import without
    from tspec.report.results import from_report
    from tspec.report.terminal import print_counts, print_report

    applied = accepted(from_report(report, program), output)
    results, report = applied.results, without(report, applied.hidden)
    write_file(results, output)
    if _format(output) is Format.TEXT:
        print_report(report, program, Console())
    else:
        write_out(results, output)
        print_counts(report, Console(stderr=True))
    return FOUND if report.findings else FOUND_NOTHING


def write_results(results: Results, output: Output) -> int:
    """Write results to standard output and, if asked for, to a file; give the exit code.

    What a baseline holds is left out. Commands that print their text themselves call `accepted`,
    `write_file` and `write_out` instead.
    """
    results = accepted(results, output).results
    write_file(results, output)
    write_out(results, output)
    return FOUND if results.results else FOUND_NOTHING


def accepted(results: Results, output: Output) -> Applied:
    """Results without those of the baseline, which is written anew if that was asked for.

    How many were left out, and which entries are stale, is said on standard error.
    """
    from tspec.report.baseline import Applied, BaselineError, apply, read, text, updated

    file = output.baseline
    if file is None:
        if output.update_baseline:
            raise typer.BadParameter("name the file: --baseline FILE --update-baseline")
        return Applied(results, frozenset(), ())
    try:
        entries = read(file) if file.exists() or not output.update_baseline else ()
    except (BaselineError, FileNotFoundError) as problem:
        said = problem if isinstance(problem, BaselineError) else f"there is no baseline {file}"
        typer.echo(f"tspec: {said}", err=True)
        raise typer.Exit(FAULT) from None
    if output.update_baseline:
        entries = updated(entries, results)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text(entries), encoding="utf-8")
    applied = apply(results, entries)
    for line in _said_of(applied, file):
        typer.echo(line, err=True)
    return applied


def _said_of(applied: Applied, file: Path) -> list[str]:
    lines = []
    if applied.hid:
        lines.append(f"{_count(applied.hid, 'finding')} hidden, which {file} accepts")
    if applied.stale:
        number = len(applied.stale)
        many, them = ("entries are", "them") if number > 1 else ("entry is", "it")
        lines.append(f"{number} {many} stale in {file} (--update-baseline takes {them} out):")
        lines += [
            f"  {e.file}: {e.rule}{f': {e.subject}' * bool(e.subject)}" for e in applied.stale
        ]
    return lines


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def write_out(results: Results, output: Output) -> None:
    """Write results to standard output."""
    from tspec.report.formats import written

    sys.stdout.write(written(results, _format(output).value))


def _format(output: Output) -> Format:
    return output.output_format or Format.TEXT


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
