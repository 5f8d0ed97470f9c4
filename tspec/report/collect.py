"""From verdicts to symptoms: for each rule, the subjects that began to violate it together, with counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from tspec.check.verdicts import Decision, Verdicts
from tspec.report.findings import Tally
from tspec.resolve.program.rules import Rule

TOGETHER = 1
"""The largest number of steps between the first violations of subjects that have one cause."""

REASONS = 3
"""Reasons of a rule that its tally keeps."""


@dataclass(slots=True)
class ViolationSeries:
    """One rule on one choice of subjects and ranks, while its instances are being counted."""

    ranks: tuple[int, ...]
    subjects: tuple[str, ...]
    first: Decision | None = None
    last_step: int = 0
    violated: int = 0
    decided: int = 0

    def add(self, found: Decision) -> None:
        """Count one more instance that held or was violated."""
        if found.verdict == "violated":
            if self.first is None:
                self.first = found
            self.violated += 1
            self.last_step = found.step
        if self.first is not None:
            self.decided += 1


@dataclass(frozen=True, slots=True)
class Symptom:
    """The subjects that began to violate one rule together."""

    rule: Rule
    first: Decision
    last_step: int
    ranks: tuple[int, ...]
    subjects: tuple[tuple[str, ...], ...]
    """Without repetitions, those that began first in front, then in the model's order."""
    violated: int
    decided: int
    everywhere: bool = field(default=True)
    """True if all ranks of the job violate the rule, each by itself."""
    since: int = 0
    """The first step from which on the fault may have existed: the one after the last step in which
    the rule held, 0 if it never held.
    """


def symptoms(rules: Iterable[Rule], verdicts: Verdicts) -> tuple[Symptom, ...]:
    """The symptoms of all rules, in the rules' order, for each rule the earliest first."""
    by_name = _by_name(rules)
    series: dict[str, dict[tuple[tuple[int, ...], tuple[str, ...]], ViolationSeries]] = {}
    held: dict[str, set[int]] = {}
    job = {
        rank
        for count in verdicts.counted
        if count.verdict in ("holds", "violated")
        for rank in count.ranks
    }
    for found in verdicts.decided:
        if found.verdict not in ("holds", "violated"):
            continue
        instance = found.instance
        if found.verdict == "holds":
            held.setdefault(instance.rule, set()).add(found.step)
        subjects = tuple("#" if name.startswith("#") else name for name in instance.subjects)
        of_rule = series.setdefault(instance.rule, {})
        key = (instance.ranks, subjects)
        if key not in of_rule:
            of_rule[key] = ViolationSeries(instance.ranks, subjects)
        of_rule[key].add(found)
        job.update(instance.ranks)
    return tuple(
        symptom
        for name, rule in by_name.items()
        for symptom in _of_rule(
            rule, _in_order(series.get(name, {}).values(), verdicts), job, held.get(name, set())
        )
    )


def tallies(rules: Iterable[Rule], verdicts: Verdicts) -> tuple[Tally, ...]:
    """The number of instances of each rule by verdict, in the rules' order."""
    counts: dict[str, Counter[str]] = {}
    reasons: dict[str, Counter[str]] = {}
    for found in verdicts.decided:
        counts.setdefault(found.instance.rule, Counter())[found.verdict] += 1
        if found.reason and found.verdict in ("idle", "unknown"):
            reasons.setdefault(found.instance.rule, Counter())[found.reason] += 1
    for count in verdicts.counted:
        counts.setdefault(count.rule, Counter())[count.verdict] += count.instances
        if count.reason and count.verdict in ("idle", "unknown"):
            reasons.setdefault(count.rule, Counter())[count.reason] += count.instances
    return tuple(
        tally(name, counts.get(name, {}), reasons.get(name, {})) for name in _by_name(rules)
    )


def tally(rule: str, counts: Mapping[str, int], reasons: Mapping[str, int]) -> Tally:
    """The tally of one rule. `counts` maps a verdict to the number of its instances, and `reasons` a
    reason to the number of idle and unknown instances that have it.
    """
    commonest = sorted(reasons.items(), key=lambda pair: (-pair[1], pair[0]))
    return Tally(
        rule,
        holds=counts.get("holds", 0),
        violated=counts.get("violated", 0),
        idle=counts.get("idle", 0),
        unknown=counts.get("unknown", 0),
        reasons=tuple(commonest[:REASONS]),
    )


def _by_name(rules: Iterable[Rule]) -> Mapping[str, Rule]:
    return {rule.qualified: rule for rule in rules}


def _of_rule(
    rule: Rule, series: Iterable[ViolationSeries], job: set[int], held: set[int]
) -> Iterable[Symptom]:
    group: list[ViolationSeries] = []
    for one in series:
        if group and _step(one) > _step(group[0]) + TOGETHER:
            yield _symptom(rule, group, job, held)
            group = []
        group.append(one)
    if group:
        yield _symptom(rule, group, job, held)


def _in_order(series: Iterable[ViolationSeries], verdicts: Verdicts) -> list[ViolationSeries]:
    """Those that were violated, by step and ranks. Subjects that fail together are in the model's order."""
    last = len(verdicts.places)

    def place(one: ViolationSeries) -> tuple[int, tuple[int, ...], list[int]]:
        return _step(one), one.ranks, [verdicts.places.get(name, last) for name in one.subjects]

    return sorted((one for one in series if one.first is not None), key=place)


def _step(series: ViolationSeries) -> int:
    return series.first.step if series.first is not None else 0


def _symptom(rule: Rule, group: list[ViolationSeries], job: set[int], held: set[int]) -> Symptom:
    head = group[0]
    if head.first is None:
        raise ValueError("a symptom needs a violated instance")
    first = head.first
    before = max((step for step in held if step < first.step), default=first.held)
    ranks = sorted({rank for series in group for rank in series.ranks})
    return Symptom(
        rule=rule,
        first=first,
        last_step=max(series.last_step for series in group),
        ranks=tuple(ranks),
        subjects=tuple(dict.fromkeys(series.subjects for series in group)),
        violated=sum(series.violated for series in group),
        decided=sum(series.decided for series in group),
        everywhere=set(ranks) >= job and not rule.across,
        since=before + 1 if before else 0,
    )
