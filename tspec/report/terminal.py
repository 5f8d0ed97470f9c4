"""A report as a person reads it in a terminal, at 80 columns or wider."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from tspec.builtin.actions import DEFAULT
from tspec.printable import lines as safe_lines
from tspec.printable import visible
from tspec.report.coordinates import in_words
from tspec.report.findings import Finding, Report, Severity, Tally
from tspec.resolve.program.rules import Program, Rule
from tspec.source import NOWHERE
from tspec.values import listed

COLOURS = {"error": "bold red", "warning": "bold yellow", "draft": "bold cyan"}


@dataclass(frozen=True, slots=True)
class Limits:
    """The number of entries of each kind that are listed before the rest are counted."""

    subjects: int = 3
    rules: int = 4
    """Rules that found nothing."""
    others: int = 8
    """Consequences, rules that were blind, ranks."""
    lines: int = 12
    """Lines of a rule."""


BRIEF = Limits()
VERBOSE = Limits(sys.maxsize, sys.maxsize, sys.maxsize, sys.maxsize)


def print_report(
    report: Report, program: Program, console: Console, limits: Limits = BRIEF
) -> None:
    """Print the findings, each with its rule, its numbers and its consequences, then the counts."""
    by_name = {rule.qualified: rule for rule in program.rules}
    for finding in report.findings:
        _print_finding(finding, by_name.get(finding.rule), console, limits)
    print_counts(report, console, limits)


def print_counts(report: Report, console: Console, limits: Limits = BRIEF) -> None:
    """Print which recordings end early, how many rules and instances were decided, and which rules
    could not speak.
    """  # fmt: skip
    tallies = report.tallies
    states = {state: [t for t in tallies if t.state == state] for state in _STATES}
    decided = sum(t.holds + t.violated for t in tallies)
    total = sum(t.total for t in tallies)
    _print_incomplete(report, console, limits)
    for fault in report.faults:
        _hanging("tspec failed: ", fault, console, style="bold red")
    console.print(_headline(report))
    console.print(
        f"{_count(len(tallies), 'rule')}: {len(states['violated'])} violated, {len(states['held'])} held. "
        f"{_count(total, 'instance')}, {decided:,} decided.",
        highlight=False,
    )
    for state, sentence in _STATES.items():
        if sentence and states[state]:
            shown = limits.others if state == "blind" else limits.rules
            _print_silent(states[state], sentence, shown, console)
    _print_off(report.off, console, limits)
    said = {t.rule for state, sentence in _STATES.items() if sentence for t in states[state]}
    for note in report.notes:
        if note.partition(": ")[0] not in said:
            _hanging("note: ", note, console, style="dim")


_STATES: Mapping[str, str] = {
    "violated": "",
    "held": "",
    "waiting": "violated in fewer steps than their action asks for",
    "vacuous": "vacuous (each instance idle, so nothing was tested)",
    "blind": "blind (what they read was not there, or had no earlier value)",
    "absent": "without an instance (nothing in the job that they apply to)",
}

_UNBROKEN = "\N{NO-BREAK SPACE}"
"""Stands for a space at which a line is not wrapped."""


def _headline(report: Report) -> Text:
    if not report.findings and report.faults:
        return _line("nothing found, but some of it was not looked at", style="bold red")
    if not report.findings and report.nothing_checked:
        return _line(f"nothing was checked: {report.nothing_checked}", style="bold yellow")
    if not report.findings:
        new = "nothing new found" if report.accepted else "nothing found"
        if report.incomplete:
            return _line(f"{new} in what was recorded", style="bold yellow")
        return _line(new, style="bold green")
    drafts = sum(f.severity == "draft" for f in report.findings)
    folded = sum(len(f.consequences) for f in report.findings)
    text = f"{_count(len(report.findings), 'finding')}"
    if drafts:
        text += ", by drafts alone" if drafts == len(report.findings) else f", {drafts} by drafts"
    if folded:
        text += f" (and {folded:,} more folded)"
    return _line(text, style="bold")


def _print_silent(tallies: list[Tally], sentence: str, shown: int, console: Console) -> None:
    names = [
        t.rule.rpartition(".")[2] + (f" ({t.reason})" if t.reason and t.state != "waiting" else "")
        for t in tallies
    ]
    console.print(_line(f"{len(tallies)} {sentence}:"), highlight=False, soft_wrap=True)
    _indented(listed(names, shown), console, style="dim", whole=names)


def _print_incomplete(report: Report, console: Console, limits: Limits) -> None:
    """Recordings that end early; ranks with the same message share a line."""
    if not report.incomplete:
        return
    severity: Severity = "error" if report.complete_required else "warning"
    title = _line(f"{severity}: ", style=COLOURS[severity])
    console.print(title.append("the recording is incomplete", style="bold"))
    alike: dict[str, list[range]] = {}
    for each in report.incomplete:
        alike.setdefault(each.why, []).append(each.ends.ranks)
    for why, ranges in list(alike.items())[: limits.others]:
        several = len(ranges) > 1 or len(ranges[0]) > 1
        _indented(f"rank{'s' if several else ''} {_ranks(ranges, limits)}: {why}", console)
    more = sum(len(ranks) for ranges in list(alike.values())[limits.others :] for ranks in ranges)
    if more:
        _indented(f"and {_count(more, 'rank')} more", console)
    if report.undecided:
        total = _count(sum(report.undecided.values()), "instance")
        rules = [f"{r.rpartition('.')[2]} {number:,}" for r, number in report.undecided.items()]
        _indented(f"{total} undecided: {listed(rules, limits.others)}", console)
    if any(each.cause not in ("missing", "empty") for each in report.incomplete):
        _indented("What a rank did after its recording ends was not checked.", console)
    console.print()


def _ranks(ranges: list[range], limits: Limits) -> str:
    """`1, 2, 5-9`: ranks that follow each other as one range."""
    joined: list[range] = []
    for each in ranges:
        if joined and joined[-1].stop == each.start:
            joined[-1] = range(joined[-1].start, each.stop)
        else:
            joined.append(each)
    names = [f"{r[0]}-{r[-1]}" if len(r) > 1 else f"{r[0]}" for r in joined]
    return listed(names, limits.others)


def _print_off(off: tuple[tuple[str, str], ...], console: Console, limits: Limits) -> None:
    """Rules that are switched off, by the place that says so."""
    by: dict[str, list[str]] = {}
    for rule, who in off:
        by.setdefault(who, []).append(rule.rpartition(".")[2])
    for who, names in by.items():
        console.print(
            _line(f"{len(names)} off by {_from_here(who)}:"), highlight=False, soft_wrap=True
        )
        _indented(listed(names, limits.rules), console, style="dim")


def _print_finding(finding: Finding, rule: Rule | None, console: Console, limits: Limits) -> None:
    title = Text()
    title.append(f"{finding.severity}: ", style=COLOURS[finding.severity])
    title.append(_line(finding.rule, style="bold"))
    console.print(title, soft_wrap=True)
    console.print(
        _line(f"  --> {_from_here(finding.file)}:{finding.line}", style="cyan"), soft_wrap=True
    )
    if rule is not None:
        for line in _excerpt(rule, limits.lines):
            console.print(line, no_wrap=True, overflow="ellipsis")
    _indented(_place(finding, limits), console, style="bold")
    if finding.location is not None:
        said = _line(f"  {finding.location.sentence}", style="cyan")
        console.print(said, no_wrap=True, overflow="ellipsis")
    _indented(finding.message, console)
    _indented(_how_often(finding), console)
    if finding.explanation:
        _indented(finding.explanation, console, style="italic")
    if finding.look:
        _indented(f"look at: {finding.look}", console)
    set_by = f" (set by {_from_here(finding.set_by)})" if finding.set_by else ""
    if finding.action != DEFAULT or set_by:
        _indented(f"action: {finding.action}{set_by}", console)
    earlier = [one for one in finding.consequences if one.step < finding.step]
    later = [one for one in finding.consequences if one.step >= finding.step]
    _print_folded("seen earlier by:", earlier, console, limits)
    _print_folded("what follows from it:", later, console, limits)
    console.print()


def _from_here(file: str) -> str:
    """A path below the folder that the user is in, as they would type it; others as they are."""
    path = Path(file)
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else file


def _print_folded(
    title: str, findings: Sequence[Finding], console: Console, limits: Limits
) -> None:
    if not findings:
        return
    _indented(title, console)
    for one in findings[: limits.others]:
        head = f"    step {one.step}  "
        name = one.rule.rpartition(".")[2] + (" (draft)" if one.severity == "draft" else "")
        acts = f"(action: {one.action})" if one.severity == "error" else ""
        subject = f"{_subjects(one, limits)} {acts}".strip()
        if subject and len(head) + len(name) + 2 + len(subject) > console.width:
            console.print(
                _line(f"{head}{name}"), no_wrap=True, overflow="ellipsis", highlight=False
            )
            _indented(f"{' ' * (len(head) - 2)}{subject}", console)
        else:
            console.print(
                _line(f"{head}{name}  {subject}".rstrip()), no_wrap=True, overflow="ellipsis"
            )
    more = len(findings) - limits.others
    if more > 0:
        console.print(_line(f"    and {more} more", style="dim"), soft_wrap=True)


def _excerpt(rule: Rule, most: int) -> Iterable[Text]:
    """The rule's lines, from its name to its `expect`: the first and the last of a long one."""
    if rule.span == NOWHERE:
        return
    expect = rule.spans.expect
    first = rule.source.position(rule.span.start).line
    last = rule.source.position(max(expect.end - 1, 0)).line if expect else first
    gutter = len(str(last))
    numbers = range(first, max(first, last) + 1)
    head = (most + 1) // 2
    left_out = (
        range(0) if len(numbers) <= most else numbers[head : len(numbers) - (most - 1 - head)]
    )
    for number in numbers:
        if number in left_out:
            if number == left_out.start:
                yield _line(f"  {'':>{gutter}} | … {len(left_out)} more lines", style="dim")
            continue
        text = _line(f"  {number:>{gutter}} | ", style="dim")
        expected = expect is not None and number >= rule.source.position(expect.start).line
        code = visible(rule.source.line(number).expandtabs(2))
        text.append(safe_lines(code), style="default" if expected else "dim")
        yield text


def _place(finding: Finding, limits: Limits) -> str:
    place = (
        f"step {finding.step}, {in_words(finding.ranks or (finding.rank,), finding.coordinates)}"
    )
    subject = _subjects(finding, limits)
    return f"{place}: {subject}" if subject else place


def _subjects(finding: Finding, limits: Limits) -> str:
    """The first subjects: `conv.weight, head.bias`, and `opt.0, conv.weight; opt.0, head.bias` of several variables."""
    several = any(", " in subject for subject in finding.subjects)
    between = "; " if several else ", "
    return listed(list(finding.subjects), limits.subjects, between) or finding.subject


def _how_often(finding: Finding) -> str:
    if finding.cut_off:
        return f"violated at least {finding.violated:,} times (the job wrote no more of them)"
    if finding.decided == 1:
        return "violated in the one instance that was decided since"
    span = f", last at step {finding.last_step}" if finding.last_step > finding.step else ""
    if finding.last_step == finding.looks_until:
        span += "; the rule looks at no later step"
    if finding.violated == 1 and not finding.decided:
        return f"violated once{span}"
    if not finding.decided:
        return f"violated {finding.violated:,} times{span}"
    return f"violated in {finding.violated:,} of {finding.decided:,} instances decided since{span}"


def _hanging(head: str, text: str, console: Console, style: str) -> None:
    lines = textwrap.wrap(visible(text), console.width - len(head), break_on_hyphens=False) or [""]
    for index, line in enumerate(lines):
        margin = head if index == 0 else " " * len(head)
        console.print(_line(f"{margin}{line}", style=style), highlight=False, soft_wrap=True)


def _indented(text: str, console: Console, style: str = "", whole: Sequence[str] = ()) -> None:
    """Print wrapped text. Parts of it that are to stay `whole` are not broken at their spaces."""
    margin = " " * (2 + len(text) - len(text.lstrip()))
    shown = visible(text.lstrip())
    room = console.width - len(margin)
    for part in (part for part in map(visible, whole) if len(part) + len(",") <= room):
        shown = shown.replace(part, part.replace(" ", _UNBROKEN))
    for line in textwrap.wrap(shown, room, break_on_hyphens=False):
        said = f"{margin}{line}".replace(_UNBROKEN, " ")
        console.print(_line(said, style=style), highlight=False, soft_wrap=True)


def _line(text: str, style: str = "") -> Text:
    """One line, with control sequences that a terminal or a CI would obey escaped."""
    return Text(safe_lines(visible(text)), style)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
