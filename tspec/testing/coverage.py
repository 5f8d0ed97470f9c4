"""Coverage of rules: verdicts that occurred, and truth values of each condition.

The truth of a condition is the verdict of the rule with this condition alone as its `when` or
`expect`. So every executor that decides rules can count conditions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from tspec.check.interpret.decide import decide
from tspec.reasons import VERDICTS, Verdict
from tspec.resolve.program import rules, types
from tspec.resolve.program.rules import Expr, Holds, Rule
from tspec.resolve.program.text import text
from tspec.source import Source, Span
from tspec.testing.run import TestRun
from tspec.why.conditions import atomic_conditions, span_of

Clause = Literal["when", "expect"]


@dataclass(frozen=True, slots=True)
class CoveredCondition:
    """A part of a clause that is true or false by itself; `alone` is the rule that counts it."""

    clause: Clause
    text: str
    span: Span
    alone: Rule


@dataclass(frozen=True, slots=True)
class ConditionCoverage:
    """The number of times that a condition was true and false."""

    condition: CoveredCondition
    true: int
    false: int


@dataclass(frozen=True, slots=True)
class Gap:
    """A verdict or truth value that never occurred, with the code that explains it and its place."""

    code: str
    message: str
    source: Source
    span: Span


@dataclass(frozen=True, slots=True)
class RuleCoverage:
    """One rule: the number of its instances with each verdict, and the values of each condition."""

    rule: Rule
    verdicts: Mapping[Verdict, int]
    conditions: tuple[ConditionCoverage, ...]

    @property
    def points(self) -> tuple[bool, ...]:
        """The coverage of each item: holds, violated, and both truth values of each condition."""
        holds, violated = self.verdicts["holds"], self.verdicts["violated"]
        both = [bool(side) for seen in self.conditions for side in (seen.true, seen.false)]
        return (bool(holds), bool(violated), *both)

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """The gaps of a rule, most serious first. A rule that was never due has no other gap."""
        rule = self.rule
        holds, violated, idle, unknown = (self.verdicts[each] for each in VERDICTS)
        if not (holds or violated or unknown):
            why = "it was never due" if idle else "it had no instance"
            return (Gap("TS0610", f"vacuous: {why}", rule.source, rule.span),)
        if not (holds or violated):
            return (Gap("TS0611", "blind: it was never known", rule.source, rule.span),)
        found = []
        if not violated:
            found.append(Gap("TS0612", "unproven: never violated", rule.source, rule.span))
        if not holds:
            found.append(Gap("TS0614", "it never held", rule.source, rule.span))
        for seen in self.conditions:
            missing = [word for word, n in (("true", seen.true), ("false", seen.false)) if not n]
            if missing:
                said = f"`{seen.condition.text}` was never {' or '.join(missing)}"
                found.append(Gap("TS0613", said, rule.source, seen.condition.span))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Coverage:
    """All rules that were asked for, in source order."""

    rules: tuple[RuleCoverage, ...]

    @property
    def percent(self) -> float:
        """The share of covered items, in percent; 100 without items."""
        points = [point for each in self.rules for point in each.points]
        return 100 * sum(points) / len(points) if points else 100.0


@dataclass(slots=True)
class VerdictCounts:
    """Verdicts as they are counted, by the qualified name of a rule or of a condition alone."""

    by_name: dict[str, Counter[Verdict]] = field(default_factory=dict)

    def add(self, name: str, verdict: Verdict, number: int = 1) -> None:
        """Count instances."""
        self.by_name.setdefault(name, Counter())[verdict] += number

    def of(self, name: str) -> Mapping[Verdict, int]:
        """The four numbers of one name."""
        found = self.by_name.get(name, Counter())
        return {verdict: found[verdict] for verdict in VERDICTS}


def conditions(rule: Rule) -> tuple[CoveredCondition, ...]:
    """The conditions of `when`, and of an `expect` that has several."""
    due = atomic_conditions(rule.when)
    found = [("when", each) for each in due]
    if isinstance(rule.expect, Holds):
        claimed = atomic_conditions(rule.expect.condition)
        found += [("expect", each) for each in claimed] if len(claimed) > 1 else []
    return tuple(
        CoveredCondition("when", text(each), span_of(each, rule), _alone(rule, place, when=each))
        if clause == "when"
        else CoveredCondition(
            "expect", text(each), span_of(each, rule), _alone(rule, place, expect=each)
        )
        for place, (clause, each) in enumerate(found)
    )


def _alone(rule: Rule, place: int, when: Expr | None = None, expect: Expr | None = None) -> Rule:
    """A rule that is idle where the condition is false, or violated there."""
    name = f"{rule.name}#{place}"
    if expect is not None:
        return replace(rule, name=name, expect=Holds(expect))
    assert when is not None
    return replace(rule, name=name, when=when, expect=Holds(_true(when.span)))


def _true(span: Span) -> Expr:
    return rules.Constant(types.BOOL, span, True)


# --- counting -----------------------------------------------------------------------------------


def count_tests(runs: Iterable[TestRun], wanted: Sequence[Rule], counts: VerdictCounts) -> None:
    """Count what tests decided, by the reference interpreter."""
    named = {rule.qualified: conditions(rule) for rule in wanted}
    for test_run in runs:
        for name, decided in test_run.decisions.items():
            for grouped, each in decided if name in named else ():
                counts.add(name, each.verdict)
                for condition in named[name]:
                    found = decide(condition.alone, grouped)
                    counts.add(condition.alone.qualified, found.verdict)


def count_recording(folder: Path, wanted: Sequence[Rule], counts: VerdictCounts) -> None:
    """Count the verdicts on a recording, by the columnar checker. Raises TraceError."""
    from tspec.check.columnar import check

    alone = [each.alone for rule in wanted for each in conditions(rule)]
    found = check([*wanted, *alone], folder, evidence=False, findings_only=True)
    for decided in found.decided:
        counts.add(decided.instance.rule, decided.verdict)
    for count in found.counted:
        counts.add(count.rule, count.verdict, count.instances)


def coverage(wanted: Sequence[Rule], counts: VerdictCounts) -> Coverage:
    """The coverage of each rule from the counts."""
    return Coverage(tuple(_covered(rule, counts) for rule in wanted))


def _covered(rule: Rule, counts: VerdictCounts) -> RuleCoverage:
    seen = []
    for condition in conditions(rule):
        found = counts.of(condition.alone.qualified)
        false = found["idle"] if condition.clause == "when" else found["violated"]
        seen.append(ConditionCoverage(condition, found["holds"], false))
    return RuleCoverage(rule, counts.of(rule.qualified), tuple(seen))
