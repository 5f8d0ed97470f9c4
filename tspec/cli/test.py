"""`tspec test [PATHS]`: run the tests of rules, and measure what they cover."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tspec.cli.options import spread
from tspec.cli.output import (
    FAULT,
    FOUND,
    FOUND_NOTHING,
    Format,
    Output,
    accepted,
    refuse_unwritable,
    write_file,
    write_or_show,
    write_out,
)
from tspec.cli.say import say, say_json
from tspec.printable import json_text

if TYPE_CHECKING:
    from tspec.report.results import Results
    from tspec.resolve.program.rules import Program
    from tspec.testing.coverage import Coverage
    from tspec.testing.suite import Suite

TestsArgument = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="PATHS",
        help="Spec files, folders (their `.test.tspec` files included), modules or packs.",
        show_default="`test.paths` of the configuration, else .",
    ),
]


class Executors(StrEnum):
    """What evaluates the rules of a test besides the reference interpreter."""

    INTERPRETER = "interpreter"
    OFFLINE = "offline"
    ALL = "all"


ExecutorsOption = Annotated[
    Executors,
    typer.Option(
        "--executors",
        help="What decides the rules: the reference interpreter alone, with the columnar checker too, or with "
        "generated hooks too (which need torch). A difference between them is a fault of tspec.",
    ),
]


@dataclass(frozen=True, slots=True)
class CoverageOptions:
    """What coverage is measured over, and how it is written."""

    coverage: Annotated[
        bool, typer.Option("--coverage", help="Report the parts of rules that no test exercises.")
    ] = False
    trace: Annotated[
        list[Path] | None,
        typer.Option(
            "--trace", metavar="DIR", exists=True, file_okay=False,
            help="A recording that counts for coverage too; may be given several times.",
        ),
    ] = None  # fmt: skip
    fail_under: Annotated[
        float | None,
        typer.Option(
            "--fail-under", metavar="PERCENT", help="Exit with 1 if coverage is below this."
        ),
    ] = None
    coverage_report: Annotated[
        Path | None,
        typer.Option(
            "--coverage-report", metavar="FILE", dir_okay=False,
            help="Write coverage to FILE too: as JSON, or LCOV if it ends with .info or .lcov.",
        ),
    ] = None  # fmt: skip

    def settled(self) -> CoverageOptions:
        """The same options. The command ends if a file that it is to write cannot be written."""
        if self.coverage_report is not None:
            refuse_unwritable("coverage report", self.coverage_report)
        return self

    @property
    def wanted(self) -> bool:
        """True if any option of coverage was given."""
        asked = (self.trace, self.fail_under, self.coverage_report)
        return self.coverage or any(each is not None and each != [] for each in asked)


@spread
def test(
    output: Output,
    covering: CoverageOptions,
    paths: TestsArgument = None,
    executors: ExecutorsOption = Executors.OFFLINE,
) -> None:
    """Run `test` declarations on their scripted or recorded traces."""
    from tspec.cli.test_results import results_of
    from tspec.testing.suite import run_all

    configured = output.project.test
    asked = paths or [output.project.path(each) for each in configured.paths] or [Path(".")]
    program = load_tests(asked, need_tests=not covering.wanted, output=output)
    suite = run_all(
        program, others=executors is not Executors.INTERPRETER, hooks=executors is Executors.ALL
    )
    results = accepted(results_of(suite), output).results
    write_file(results, output)
    seen = measured(program, suite, covering) if covering.wanted else None
    write(results, suite, seen, output)
    if suite.faults:
        raise typer.Exit(FAULT)
    least = covering.fail_under if covering.fail_under is not None else configured.fail_under
    low = seen is not None and seen.percent < (least or 0)
    raise typer.Exit(FOUND if results.results or low else FOUND_NOTHING)


def load_tests(
    paths: list[Path], *, need_tests: bool = True, output: Output | None = None
) -> Program:
    """The program in PATHS. Errors are printed and end the command."""
    from tspec.cli.specs import refuse
    from tspec.resolve import load

    program = refuse(load(paths, tests=True), output)
    if need_tests and not program.tests:
        say(f"tspec: no test in {', '.join(map(str, paths))}", err=True)
        raise typer.Exit(FAULT)
    return program


def measured(program: Program, suite: Suite, covering: CoverageOptions) -> Coverage:
    """The coverage of the rules asked for, written to the file that was named, if one was."""
    from tspec.testing.coverage import VerdictCounts, count_recording, count_tests, coverage
    from tspec.testing.show_coverage import as_lcov, as_plain

    counts = VerdictCounts()
    count_tests([judged.test_run for judged in suite.tests], program.rules, counts)
    for folder in covering.trace or ():
        count_recording(folder, program.rules, counts)
    seen = coverage(program.rules, counts)
    file = covering.coverage_report
    if file is not None:
        lcov = file.suffix in (".info", ".lcov")
        text = as_lcov(seen) if lcov else json_text(as_plain(seen)) + "\n"
        write_or_show("coverage report", file, text)
    return seen


def write(results: Results, suite: Suite, seen: Coverage | None, output: Output) -> None:
    """Write failures and coverage to standard output.

    For formats other than text, the summary goes to standard error.
    """
    from tspec.testing.show_coverage import as_plain, as_text, summary

    if output.output_format is Format.TEXT:
        write_out(results, output)
        failed = bool(results.results or suite.faults)
        say(
            f"{chr(10) if results.results else ''}{suite.summary}", form="bad" if failed else "good"
        )
        if seen is not None:
            say(f"\n{as_text(seen)}")
        return
    if output.output_format is Format.JSON and seen is not None:
        from tspec.report.formats import written

        failures = json.loads(written(results, "json"))
        say_json({"failures": failures, "coverage": as_plain(seen)})
    else:
        write_out(results, output)
    say("\n".join([suite.summary, *(summary(seen) if seen is not None else ())]), err=True)
