"""The findings of any command, in the form that all output formats write: SARIF, JUnit, GitHub,
JSON, text.

A `Result` is one finding: of a rule over a run, or of a code over a spec. `Results` are those of
one command with further data for the formats. Commands build them here (`from_diagnostic`,
`from_finding`) or by hand, and `tspec.report.formats` writes them.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from tspec.builtin.actions import ACTIONS
from tspec.diagnostics import Diagnostic, render
from tspec.printable import fenced
from tspec.report.coordinates import in_words
from tspec.report.figures import Figure
from tspec.report.findings import Finding, Report, Severity, Tally
from tspec.report.incomplete import CODE, Incomplete
from tspec.resolve.program.documentation import explanation
from tspec.resolve.program.rules import Program, Rule
from tspec.resources import stable
from tspec.source import NOWHERE, Source, Span
from tspec.trace.model import Ending, ranks_in_words
from tspec.values import Location

State = Literal["passed", "failed", "skipped", "error"]
"""The state of a case.

`skipped` is vacuous, blind, absent, off or a recording that ends early; `error` is an internal
fault of tspec, or a recording that had to be complete.
"""

_NUMBER_OF_A_CALL = re.compile(r"#\d+")
_CODE = re.compile(r"TS\d{4}")


@dataclass(frozen=True, slots=True)
class Region:
    """A stretch of a file as people count it: lines and columns begin at 1, `end_column` is behind it.

    `line` 0 is a file as a whole.
    """

    file: str
    line: int = 0
    column: int = 0
    end_line: int = 0
    end_column: int = 0
    message: str = ""
    """The relation of this place to a finding; empty for the finding's own place."""


@dataclass(frozen=True, slots=True)
class Result:
    """One finding.

    `rule` is a rule's qualified name or a code (`TS0402`). `explanation` is the rule's own text,
    `help` the next thing to do. `properties` are further values for JSON and SARIF (`step`, `rank`,
    `subject`). `fingerprint` stays the same when the rule moves within its file, or the finding to
    another step; two findings may share one.
    """

    rule: str
    message: str
    region: Region
    severity: Severity = "error"
    explanation: str = ""
    help: str = ""
    properties: Mapping[str, Any] = field(default_factory=dict)
    fingerprint: str = ""
    related: tuple[Region, ...] = ()
    consequences: tuple[Result, ...] = ()
    """Results of the same cause."""
    text: str = ""
    """The finding as the terminal shows it; empty where a command prints findings itself."""
    location: Location | None = None
    """The line of the script that a finding about a run points at; `region` is then its rule's place."""

    @property
    def in_script(self) -> Location | None:
        """The location, if it is in a file that can be shown."""
        at = self.location
        return at if at is not None and at.is_in_a_file else None

    @property
    def in_run(self) -> str:
        """Step, ranks and subject where it was found in a run, as far as they are known; nothing for a spec."""
        step, subject = self.properties.get("step"), self.properties.get("subject")
        if step is None:
            return ""
        ranks = self.properties.get("ranks") or [self.properties.get("rank")]
        at = {int(rank): each for rank, each in self.properties.get("coordinates", {}).items()}
        where = f"step {step}"
        if ranks != [None]:
            where += f", {in_words(ranks, at)}"
        more = len(self.properties.get("subjects") or ()) - 1
        if subject and more > 0:
            subject += f" and {more} more"
        return f"{where}: {subject}" if subject else where

    @property
    def file(self) -> str:
        """The path of its file."""
        return self.region.file

    @property
    def line(self) -> int:
        """Its first line, counted from 1; 0 for a file as a whole."""
        return self.region.line

    @property
    def column(self) -> int:
        """Its first column, counted from 1; 0 if it has none."""
        return self.region.column

    @property
    def end_line(self) -> int:
        """Its last line."""
        return self.region.end_line

    @property
    def end_column(self) -> int:
        """The column behind its last character."""
        return self.region.end_column


@dataclass(frozen=True, slots=True)
class Case:
    """One checked item with an outcome: a rule in a run, a test.

    Results with its `file` and `rule` belong to it. `message` is the reason why it was skipped or
    failed.
    """

    rule: str
    file: str
    state: State
    message: str = ""
    line: int = 0
    properties: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RuleHelp:
    """The help of a rule or code: one sentence, and the whole as Markdown."""

    rule: str
    summary: str
    help: str = ""
    severity: Severity = "warning"
    properties: Mapping[str, Any] = field(default_factory=dict)
    """Further values, such as the `pack` that the rule comes from and its `version`."""


@dataclass(frozen=True, slots=True)
class Results:
    """The findings of one command, and the items that it checked."""

    results: tuple[Result, ...]
    cases: tuple[Case, ...] = ()
    faults: tuple[str, ...] = ()
    """Faults of tspec's own. The parts that they concern were not checked."""
    command: str = ""
    """The command that made the findings (`lint`).

    It separates the findings of several commands in one baseline.
    """
    files: tuple[str, ...] = ()
    """Files that were checked, with or without findings. The files of cases are known."""
    about: Mapping[str, RuleHelp] = field(default_factory=dict)
    """Rule or code -> its help. For other codes, formats write the code's page."""
    incomplete: tuple[Result, ...] = ()
    """Recordings that end early. They are no findings: no baseline holds them."""
    notes: tuple[str, ...] = ()
    """What a person has to know of the check besides."""

    figures: tuple[Figure, ...] = ()
    """Figures of a page beside the findings."""

    def flat(self) -> tuple[Result, ...]:
        """The findings, each followed by its consequences."""
        return tuple(each for result in self.results for each in (result, *result.consequences))


def case_of(result: Result) -> tuple[str, str]:
    """File and name of the case that a result belongs to.

    A finding of a test has the code of the fault, and the test's title.
    """
    return result.file, str(result.properties.get("test", result.rule))


def from_diagnostic(diagnostic: Diagnostic, properties: Mapping[str, Any] | None = None) -> Result:
    """A finding about a spec. `properties` are further values, such as whether it has a fix."""
    source, span = diagnostic.source, diagnostic.span
    line = source.line(source.position(span.start).line) if source.text else ""
    return Result(
        rule=diagnostic.code,
        message=diagnostic.message,
        region=region(source, span),
        severity=diagnostic.severity,
        help=diagnostic.hint or "",
        properties=dict(properties or {}),
        fingerprint=fingerprint(
            diagnostic.code, portable(source.path), diagnostic.message, " ".join(line.split())
        ),
        related=tuple(
            region(other.source or source, other.span, other.message)
            for other in diagnostic.related
        ),
        text=render(diagnostic),
    )


def from_finding(finding: Finding, program: Program) -> Result:
    """A finding about a run, at the name of its rule, with its location in the script."""
    by_name = {rule.qualified: rule for rule in program.rules}
    return _from_finding(finding, by_name)


def from_findings(findings: Iterable[Finding], program: Program) -> tuple[Result, ...]:
    """Findings about a run, each at the name of its rule."""
    by_name = {rule.qualified: rule for rule in program.rules}
    return tuple(_from_finding(finding, by_name) for finding in findings)


def _from_finding(finding: Finding, by_name: Mapping[str, Rule]) -> Result:
    rule = by_name.get(finding.rule)
    if rule is not None and rule.span != NOWHERE:
        place = region(rule.source, rule.span)
    else:
        place = Region(finding.file, finding.line, 0, finding.line, 0)
    return Result(
        rule=finding.rule,
        message=finding.message,
        region=place,
        severity=finding.severity,
        explanation=finding.explanation,
        help=finding.look,
        properties={
            "step": finding.step,
            "rank": finding.rank,
            "subject": finding.subject,
            "values": dict(finding.values),
            "ranks": list(finding.ranks),
            "coordinates": {str(rank): dict(at) for rank, at in finding.coordinates.items()},
            "subjects": list(finding.subjects),
            "last_step": finding.last_step,
            "violated": finding.violated,
            "decided": finding.decided,
            "cut_off": finding.cut_off,
            "looks_until": finding.looks_until,
            "action": finding.action,
            "set_by": finding.set_by,
            "location": None if finding.location is None else asdict(finding.location),
        },
        fingerprint=finding_fingerprint(finding),
        consequences=tuple(_from_finding(each, by_name) for each in finding.consequences),
        location=finding.location,
    )


def from_report(report: Report, program: Program) -> Results:
    """A report on a run: its findings, and each rule as a case with its outcome."""
    tallies = {tally.rule: tally for tally in report.tallies}
    messages: dict[str, str] = {}
    for finding in report.findings:
        for each in (finding, *finding.consequences):
            messages.setdefault(each.rule, each.message)
    abouts = {
        rule.qualified: about(rule, program.versions.get(rule.module, ""))
        for rule in (*program.rules, *program.off)
    }
    cases = [
        _case(
            rule,
            tallies.get(rule.qualified, Tally(rule.qualified)),
            messages,
            abouts[rule.qualified],
        )
        for rule in program.rules
    ]
    return Results(
        results=from_findings(report.findings, program),
        cases=(*cases, *map(_off, program.off)),
        faults=report.faults,
        command="check",
        about=abouts,
        notes=report.notes,
        incomplete=tuple(
            _from_incomplete(each, "error" if report.complete_required else "warning")
            for each in report.incomplete
        ),
    )


def _from_incomplete(incomplete: Incomplete, severity: Severity) -> Result:
    """A recording that ends early, at its file."""
    ends = incomplete.ends
    ending = ends.ending or Ending("cut off")
    ranks = ranks_in_words(ends.ranks)
    return Result(
        rule=CODE,
        message=incomplete.message,
        region=Region(ends.file),
        severity=severity,
        explanation="What a rank did after its recording ends was not checked.",
        help=f"what ended {ranks}, or the recording",
        properties={
            "step": ending.step,
            "rank": ends.ranks[0],
            "ranks": list(ends.ranks),
            "subject": "",
            "cause": incomplete.cause,
            "torn_bytes": ending.torn,
            "undecided": dict(incomplete.undecided),
        },
        fingerprint=fingerprint(CODE, ranks),
    )


def about(rule: Rule, version: str = "") -> RuleHelp:
    """The text of a rule for formats: the first paragraph of its `///`, all of it, and the rule's
    source. `version` is its module's, if it has one.
    """
    text = rule.source.slice(rule.spans.whole)
    parts = [rule.doc.strip(), fenced(text, "tspec") if text else ""]
    return RuleHelp(
        rule.qualified,
        explanation(rule.doc) or rule.name.replace("_", " "),
        "\n\n".join(part for part in parts if part),
        severity(rule),
        {"pack": rule.module, "version": version} if version else {},
    )


def severity(rule: Rule) -> Severity:
    """The severity of a violation: an error if the rule may do more than warn."""
    if rule.draft:
        return "draft"
    return "error" if any(ACTIONS[r.action].acts for r in rule.responses) else "warning"


def _case(rule: Rule, tally: Tally, messages: Mapping[str, str], about: RuleHelp) -> Case:
    state: State = "skipped"
    message = ""
    if rule.qualified in messages:
        state, message = "failed", messages[rule.qualified]
    elif tally.state == "held":
        state = "passed"
    else:
        reason = f": {tally.reason}" if tally.reason else ""
        message = f"{_SILENT[tally.state]}{reason}"
    line = rule.source.position(rule.span.start).line
    return Case(rule.qualified, rule.source.path, state, message, line, about.properties)


def _off(rule: Rule) -> Case:
    line = rule.source.position(rule.span.start).line
    by = shown(rule.set_by)
    return Case(rule.qualified, rule.source.path, "skipped", f"off by {by}", line)


_SILENT = {
    "violated": "violated, and left out of the report",
    "waiting": "violated in fewer steps than its action asks for",
    "vacuous": "vacuous: each instance was idle, so nothing was tested",
    "blind": "blind: what it reads was not there, or had no earlier value",
    "absent": "no instance: nothing that it speaks of happened",
}


def region(source: Source, span: Span, message: str = "") -> Region:
    """The region of a span. A file without text, such as a missing one, is a region as a whole."""
    if not source.text:
        return Region(source.path, message=message)
    start, end = source.position(span.start), source.position(max(span.end, span.start))
    return Region(source.path, start.line, start.column, end.line, end.column, message)


def finding_fingerprint(finding: Finding) -> str:
    """The fingerprint of a finding about a run: its rule and subject, without the step, the rank or
    the number of a call.
    """
    return fingerprint(finding.rule, subject_of(finding.subject))


def subject_of(subject: str) -> str:
    """A subject without the numbers of calls, which differ from run to run."""
    return _NUMBER_OF_A_CALL.sub("#", subject)


def fingerprint(*parts: str) -> str:
    """24 hexadecimal digits that name a finding by its parts."""
    return hashlib.sha256("\0".join(parts).encode(errors="surrogatepass")).hexdigest()[:24]


def shown(file: str) -> str:
    """A path below the working folder relative to it, others as they are; with `/` on any system."""
    path = Path(os.path.abspath(file))
    here = Path.cwd()
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else file


def portable(file: str) -> str:
    """A path that is the same on every machine: of files that ship with tspec `tspec:stdlib/a.tspec`."""
    return stable(file, Path.cwd())


def is_code(rule: str) -> bool:
    """True if a name is a code (`TS0402`), not a rule of a spec."""
    return bool(_CODE.fullmatch(rule))
