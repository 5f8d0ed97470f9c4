"""Output of findings: a format on standard output, and one in a file."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from tspec import files
from tspec.cli.project import Project
from tspec.cli.say import BadParameter, coloured, say, warn
from tspec.report import baseline_file
from tspec.report.baseline_file import BaselineEntry, BaselineError

if TYPE_CHECKING:
    from tspec.config.model import FailOn
    from tspec.report.baseline import FilteredResults
    from tspec.report.findings import Report
    from tspec.report.results import Results
    from tspec.resolve.program.rules import Program

FOUND_NOTHING, FOUND, FAULT = 0, 1, 2
"""Exit codes."""


class Format(StrEnum):
    """The formats in which findings are written."""

    TEXT = "text"
    JSON = "json"
    SARIF = "sarif"
    JUNIT = "junit"
    GITHUB = "github"
    HTML = "html"


FormatOption = Annotated[
    Format | None,
    typer.Option("--output-format", help="How findings are written to standard output."),
]
ReportOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--report",
        metavar="FILE",
        dir_okay=False,
        help="Write the findings to FILE too (.json, .sarif, .xml for JUnit, .html, .txt); may be given more than once.",
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
        help="A file of accepted findings; they are counted, and not reported.",
    ),
]
UpdateBaselineOption = Annotated[
    bool,
    typer.Option("--update-baseline", help="Write the current findings into the baseline."),
]


@dataclass(frozen=True, slots=True)
class Output(Project):
    """Where findings go; with `@spread` (`tspec.cli.options`) its fields are a command's options.

    What the command line leaves open is then as the project's configuration says. Files that cannot
    be used end the command before it begins: what is found after hours of training is not lost.
    """

    output_format: FormatOption = None
    report: ReportOption = None
    report_format: ReportFormatOption = None
    baseline: BaselineOption = None
    update_baseline: UpdateBaselineOption = False
    entries: tuple[BaselineEntry, ...] = field(default=(), metadata={"option": False})
    """The entries of the baseline."""

    def settled(self) -> Output:
        """Apply the configuration, if there is one, and read the baseline."""
        found = Project.settled(self)
        baseline = found.baseline
        if baseline is None and found.project.baseline is not None:
            baseline = found.project.inside(found.project.baseline)
        chosen = found.output_format or Format(found.project.output_format)
        settled = replace(found, output_format=chosen, baseline=baseline)
        _refuse_unusable(settled)
        return replace(settled, entries=_entries(settled))


def _refuse_unusable(output: Output) -> None:
    """End the command if a file that it is to write cannot be written."""
    if output.update_baseline and output.baseline is None:
        raise BadParameter("name the file: --baseline FILE --update-baseline")
    reports = output.report or []
    for report in reports:
        if output.report_format is None:
            _refuse_unknown_ending(report)
        refuse_unwritable("report", report)
    if output.update_baseline and output.baseline is not None:
        refuse_unwritable("baseline", output.baseline)
    baseline = None if output.baseline is None else os.path.realpath(output.baseline)
    written: set[str] = set()
    for report in reports:
        place = os.path.realpath(report)
        if place == baseline:
            _refuse(f"the report and the baseline are one file, {report}: name another")
        if place in written:
            _refuse(f"two reports are one file, {report}: name another")
        written.add(place)


def _refuse_unknown_ending(report: Path) -> None:
    """End the command if a report's file extension names no format.

    A report without an extension is JSON.
    """
    from tspec.report.formats import SUFFIXES

    ending = report.suffix
    if ending and ending.lower() not in SUFFIXES:
        raise BadParameter(
            f"no format has the ending {ending}: name the file with one of {', '.join(SUFFIXES)}, or say"
            " --report-format",
            param_hint="--report",
        )


def refuse_no_folder(output: Path) -> None:
    """End the command before any work, if the folder to write into does not exist."""
    if not output.parent.is_dir():
        raise BadParameter(f"there is no folder {output.parent} to write {output.name} into")


def refuse_unwritable(what: str, file: Path) -> None:
    """End the command if a file that it is to write cannot be written."""
    why = files.obstacle(file)
    if why is not None:
        _refuse(f"the {what} {file} cannot be written: {why}")


def _refuse(why: str) -> NoReturn:
    warn(why)
    raise typer.Exit(FAULT)


def _entries(output: Output) -> tuple[BaselineEntry, ...]:
    """The entries of the baseline. A missing or malformed baseline ends the command."""
    file = output.baseline
    if file is None:
        return ()
    try:
        return baseline_file.read(file)
    except FileNotFoundError:
        if output.update_baseline:
            return ()
        _refuse(f"there is no baseline {file}; --update-baseline writes one")
    except BaselineError as problem:
        _refuse(str(problem))
    except OSError as problem:
        _refuse(f"the baseline {file} cannot be read: {files.reason(problem)}")


AcceptedOnlyOption = Annotated[
    bool, typer.Option("--accepted-only", help="Leave out findings of draft rules.")
]


VerboseOption = Annotated[
    bool, typer.Option("--verbose", help="List all names instead of `and 15 more`.")
]


def write(
    report: Report,
    program: Program,
    output: Output,
    fail_on: FailOn = "warning",
    verbose: bool = False,
) -> int:
    """Write a report on a run, and give the exit code that it asks for.

    Findings that are less severe than `fail_on` ask for none. With `verbose` no name is left out of the text.
    """
    from rich.console import Console

    from tspec.report.baseline import without
    from tspec.report.results import from_report
    from tspec.report.terminal import BRIEF, VERBOSE, print_counts, print_report

    applied = accepted(from_report(report, program), output)
    results, report = applied.results, without(report, applied.hidden)
    write_file(results, output)
    limits = VERBOSE if verbose else BRIEF
    if _format(output) is Format.TEXT:
        print_report(report, program, Console(), limits)
    else:
        write_out(results, output)
        print_counts(report, Console(stderr=True), limits)
    if report.incomplete and report.complete_required:
        return FAULT
    return FOUND if report.fails(fail_on) else FOUND_NOTHING


def accepted(results: Results, output: Output) -> FilteredResults:
    """Results without those of the baseline, which is rewritten if that was asked for.

    The number left out, and stale entries, are printed to standard error.
    """
    from tspec.report.baseline import FilteredResults, apply, updated

    file, entries = output.baseline, output.entries
    if file is None:
        return FilteredResults(results, frozenset(), ())
    if output.update_baseline:
        after = updated(entries, results)
        try:
            files.write(file, baseline_file.text(after))
            entries = after
        except OSError as problem:
            why = files.reason(problem)
            warn(f"the baseline {file} cannot be written: {why}; it accepts what it did before")
    applied = apply(results, entries)
    for line in _said_of(applied, file):
        say(line, err=True)
    return applied


def _said_of(applied: FilteredResults, file: Path) -> list[str]:
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

    text = written(results, _format(output).value)
    sys.stdout.write(coloured(text, sys.stdout) if _format(output) is Format.TEXT else text)


def _format(output: Output) -> Format:
    return output.output_format or Format.TEXT


def write_file(results: Results, output: Output) -> None:
    """Write results to the files that were named: in the format of each name, without an ending as JSON.

    What cannot be written after all goes to standard error.
    """
    from tspec.report.formats import SUFFIXES, written

    asked = output.report_format
    for file in output.report or ():
        chosen = asked.value if asked else SUFFIXES.get(file.suffix.lower(), "json")
        write_or_show("report", file, written(results, chosen))


def write_or_show(what: str, file: Path, text: str) -> None:
    """Write a file. If that fails, print the reason and the content to standard error."""
    try:
        files.write(file, text)
    except OSError as problem:
        why = files.reason(problem)
        say(f"tspec: the {what} {file} cannot be written: {why}; it follows", err=True)
        sys.stderr.write(text)
