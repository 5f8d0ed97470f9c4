"""Deciding many rules: frame by frame, in as many threads as there are cores.

Planning a query takes one core whatever the engine does, and a pack of rules is many queries; so each
thread has tables of its own and takes the next frame of rules.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue

from tspec.check.columnar.decide import (
    InstanceTable,
    UndecidedRule,
    counts_of,
    decide,
    frame,
    rows_of,
    truth_of,
)
from tspec.check.columnar.facts import Facts, LoadedTrace
from tspec.check.columnar.notes import waiting
from tspec.check.columnar.shown import locations, shown
from tspec.check.verdicts import Decision, Instance, InstanceCount
from tspec.resolve.program.rules import Rule

_MOST = 4
"""Most threads. Each holds tables of its own."""
_FRAMES = 4
"""The number of frames of rules from which on another thread is worth its tables."""


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """Options of a check; `tspec.check.columnar.check` describes them."""

    evidence: bool
    findings_only: bool
    truth_only: bool = False


@dataclass(slots=True)
class CheckResult:
    """The results of rules, by the `id` of the rule."""

    decided: dict[int, tuple[Decision, ...]] = field(default_factory=dict)
    counted: dict[int, list[InstanceCount]] = field(default_factory=dict)
    truth: dict[int, list[tuple[int, int, bool]]] = field(default_factory=dict)
    failed: dict[int, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def join(self, other: CheckResult) -> None:
        """Add the results of other rules."""
        self.decided |= other.decided
        self.counted |= other.counted
        self.truth |= other.truth
        self.failed |= other.failed
        self.notes += other.notes


def decide_all(rules: Sequence[Rule], recording: LoadedTrace, asked: CheckOptions) -> CheckResult:
    """Decide all rules that queries can decide, and note what the recording lacks."""
    frames: dict[object, list[Rule]] = {}
    for rule in rules:
        frames.setdefault(frame(rule), []).append(rule)
    waiting_frames: SimpleQueue[list[Rule]] = SimpleQueue()
    for together in frames.values():
        waiting_frames.put(together)
    cores = os.cpu_count() or 1
    workers = max(1, min(_MOST, cores, len(frames) // _FRAMES))
    threads = 1 if recording.is_small else max(1, cores // workers)

    def work(number: int) -> CheckResult:
        with Facts(recording, threads) as facts:
            outcome = CheckResult()
            while (together := _next(waiting_frames)) is not None:
                _decide(together, facts, asked, outcome)
            if number == 0:
                outcome.notes = tuple(waiting(facts))
            return outcome

    if workers == 1:
        return work(0)
    whole = CheckResult()
    with ThreadPoolExecutor(workers) as pool:
        for outcome in pool.map(work, range(workers)):
            whole.join(outcome)
    return whole


def _next(frames: SimpleQueue[list[Rule]]) -> list[Rule] | None:
    try:
        return frames.get_nowait()
    except Empty:
        return None


def _decide(
    together: Sequence[Rule], facts: Facts, asked: CheckOptions, outcome: CheckResult
) -> None:
    for each in _of_frame(together, facts, asked.evidence):
        if isinstance(each, UndecidedRule):
            outcome.failed[id(each.rule)] = each.why
            continue
        if asked.truth_only:
            outcome.truth[id(each.rule)] = truth_of(each, facts)
            continue
        if asked.findings_only:
            counts = counts_of(each, facts)
            if not any(count.verdict == "violated" for count in counts):
                outcome.counted[id(each.rule)] = counts
                continue
        outcome.decided[id(each.rule)] = tuple(_instances(each, facts, asked.evidence))


def _of_frame(
    together: Sequence[Rule], facts: Facts, evidence: bool
) -> Iterator[InstanceTable | UndecidedRule]:
    """Decide rules of one frame together, unless the engine fails on one of them."""
    import duckdb

    try:
        yield from decide(together, facts, evidence)
        return
    except duckdb.Error as error:
        why = str(error).splitlines()[0]
    if len(together) == 1:
        yield UndecidedRule(together[0], why)
        return
    for rule in together:
        facts.forget(rule.window)
        try:
            yield from decide([rule], facts, evidence)
        except duckdb.Error as error:
            yield UndecidedRule(rule, str(error).splitlines()[0])
        facts.forget(rule.window)


def _instances(decisions: InstanceTable, facts: Facts, evidence: bool) -> Iterator[Decision]:
    name = decisions.rule.qualified
    rows = rows_of(decisions, facts)
    some = evidence and any(row[5] == "violated" for row in rows)
    values = shown(decisions, facts) if some else {}
    lines = locations(decisions, facts) if some else {}
    for at0, at1, ranks, step, row, verdict, reason, *names in rows:
        key = Instance(name, tuple(ranks), (at0, at1), tuple(names))
        if verdict == "violated":
            yield Decision(key, verdict, reason or "", values.get(row, {}), step, lines.get(row))
        else:
            yield Decision(key, verdict, reason or "", step=step)
