"""Baselines: findings that a team has accepted for now, which are not reported until they are gone."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tspec.report.baseline_file import BaselineEntry
from tspec.report.findings import Finding, Report
from tspec.report.results import (
    Case,
    Result,
    Results,
    case_of,
    finding_fingerprint,
    portable,
    subject_of,
)


@dataclass(frozen=True, slots=True)
class FilteredResults:
    """Results without the entries of a baseline."""

    results: Results
    hidden: frozenset[str]
    """Keys of the results that were left out."""
    stale: tuple[BaselineEntry, ...]
    """Entries without a finding, whose file was checked or does not exist any more."""
    hid: int = 0
    """The number of results that were left out, consequences included."""


def updated(before: Iterable[BaselineEntry], results: Results) -> tuple[BaselineEntry, ...]:
    """The entries of all results, and earlier entries that this command did not check."""
    found = [_entry(key, result, results.command) for key, result in keyed(results)]
    looked = _checked_files(results)
    kept = [entry for entry in before if not looked.would_find(entry)]
    return tuple(sorted({*kept, *found}))


def apply(results: Results, entries: Iterable[BaselineEntry]) -> FilteredResults:
    """Results without those in `entries`. The consequences of a hidden result take its place."""
    mine = [entry for entry in entries if entry.command == results.command]
    known = {entry.fingerprint for entry in mine}
    keys = [key for key, _ in keyed(results)]
    hidden = frozenset(known & set(keys))
    looked = _checked_files(results)
    stale = [e for e in mine if e.fingerprint not in hidden and looked.would_find(e)]
    place = iter(keys)
    kept: list[Result] = []
    for result in results.results:
        here = next(place)
        inner = tuple(each for each in result.consequences if next(place) not in hidden)
        if here not in hidden:
            kept.append(replace(result, consequences=inner))
        elif inner:
            kept.append(replace(inner[0], consequences=inner[1:]))
    left = replace(results, results=tuple(kept))
    count = sum(key in hidden for key in keys)
    cases = _accepted_cases(results, left)
    return FilteredResults(replace(left, cases=cases), hidden, tuple(sorted(stale)), count)


def _accepted_cases(before: Results, left: Results) -> tuple[Case, ...]:
    """The cases. A case is skipped if all its findings are accepted."""
    failing = {case_of(result) for result in left.flat()}
    accepted = {case_of(result) for result in before.flat()} - failing
    return tuple(
        replace(case, state="skipped", message=f"accepted by the baseline: {case.message}")
        if case.state == "failed" and (case.file, case.rule) in accepted
        else case
        for case in before.cases
    )


def without(report: Report, hidden: frozenset[str]) -> Report:
    """A report on a run without findings of hidden fingerprints, as `apply` leaves them out."""
    kept: list[Finding] = []
    every = [each for finding in report.findings for each in (finding, *finding.consequences)]
    accepted = sum(finding_fingerprint(each) in hidden for each in every)
    for finding in report.findings:
        inner = tuple(f for f in finding.consequences if finding_fingerprint(f) not in hidden)
        if finding_fingerprint(finding) not in hidden:
            kept.append(replace(finding, consequences=inner))
        elif inner:
            kept.append(replace(inner[0], consequences=inner[1:]))
    return replace(report, findings=tuple(kept), accepted=accepted)


def keyed(results: Results) -> Iterator[tuple[str, Result]]:
    """All results with their keys.

    The key of a finding about a run is its fingerprint. Two equal findings about a spec have
    different keys, so that copying a faulty line is a new finding.
    """
    seen: dict[str, int] = {}
    for result in results.flat():
        number = seen[result.fingerprint] = seen.get(result.fingerprint, 0) + 1
        alike = number > 1 and "step" not in result.properties
        yield f"{result.fingerprint}-{number}" if alike else result.fingerprint, result


def _entry(key: str, result: Result, command: str) -> BaselineEntry:
    about_a_run = "step" in result.properties
    subject = subject_of(str(result.properties.get("subject", ""))) if about_a_run else None
    return BaselineEntry(
        command,
        portable(result.file),
        result.rule,
        result.message if subject is None else subject,
        key,
    )


@dataclass(frozen=True, slots=True)
class _CheckedFiles:
    """The files that one command checked."""

    command: str
    files: frozenset[str]

    def would_find(self, entry: BaselineEntry) -> bool:
        """True if the command would have found an entry: the entry's file was checked, or no longer
        exists.
        """
        if entry.command != self.command:
            return False
        gone = not entry.file.startswith("tspec:") and not os.path.exists(entry.file)
        return entry.file in self.files or gone


def _checked_files(results: Results) -> _CheckedFiles:
    files = {*results.files, *(case.file for case in results.cases)}
    files |= {result.file for result in results.flat()}
    return _CheckedFiles(results.command, frozenset(map(portable, files)))
