"""Finds rules that another rule implies, and compares two versions of a rule.

Rules are compared if they are about the same instances: the same subjects, group and window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

import z3

from tspec.logic.overlap import may_be_decided, reads
from tspec.logic.questions import QueryResult, Questions
from tspec.logic.verdict import condition, same_truth, verdict
from tspec.resolve.program import rules
from tspec.resolve.program.queries import conditions, conjuncts
from tspec.resolve.program.rules import (
    Claim,
    Contains,
    EventPattern,
    Expr,
    For,
    Holds,
    Rule,
    Window,
)
from tspec.resolve.program.walk import parts, rebuild_rule, transform

T = TypeVar("T")

NO = QueryResult("no")


def implies(stronger: Rule, weaker: Rule) -> QueryResult:
    """Decides whether the stronger rule is violated wherever the weaker one is.

    Rules about other instances are not compared: then the answer is no, without a witness.
    """
    stronger = renamed(stronger, weaker)
    if not _covers(stronger, weaker):
        return NO
    if _plainly(stronger, weaker):
        return QueryResult("yes")
    asked = Questions({})
    return asked.always(_violated_too(stronger, weaker, asked), witness=True)


def equivalent(first: Rule, second: Rule) -> QueryResult:
    """Decides whether two rules give every instance the same verdict.

    The witness is an instance with different verdicts.
    """
    first = renamed(first, second)
    if _frame(first) != _frame(second) or not _same_kind(first, second):
        return NO
    asked = Questions({})
    due, also_due = (condition(each, asked.encoder, each.when) for each in (first, second))
    if not (isinstance(first.expect, Holds) and isinstance(second.expect, Holds)):
        if first.expect != second.expect or (first.when is None) != (second.when is None):
            return NO
        return asked.always(same_truth(due, also_due), witness=True)
    met = asked.encoder.encode(first.expect.condition)
    also_met = asked.encoder.encode(second.expect.condition)
    if first.across:
        alike = z3.And(same_truth(due, also_due), z3.Implies(due.true, same_truth(met, also_met)))
    else:
        one, other = verdict(due, met), verdict(also_due, also_met)
        alike = z3.And(
            one.holds == other.holds, one.violated == other.violated, one.idle == other.idle
        )
    return asked.always(alike, witness=True)


def removes_implied(
    found: Sequence[Rule],
) -> tuple[tuple[Rule, ...], tuple[tuple[Rule, Rule], ...]]:
    """The rules that no other rule implies, and the implied ones, each with a rule that implies it.

    Of equivalent rules the first is kept.
    """
    by: dict[int, int] = {}
    for members in _buckets(found).values():
        if len(members) < 2:
            continue
        compared = RuleComparison()
        names = [f"v{n}" for n in range(len(found[members[0]].subjects))]
        alike = {place: with_names(found[place], names) for place in members}
        for weak in members:
            for strong in members:
                if strong == weak or strong in by:
                    continue
                if not compared.implies(alike[strong], alike[weak]):
                    continue
                if strong < weak or not compared.implies(alike[weak], alike[strong]):
                    by[weak] = strong
                    break
    kept = tuple(rule for place, rule in enumerate(found) if place not in by)
    return kept, tuple((found[place], found[_last(by, place)]) for place in sorted(by))


class RuleComparison:
    """Many rules about the same variables, compared in one z3 context; cheap looks come first."""

    def __init__(self) -> None:
        self._reads: dict[tuple[Expr, ...], frozenset[Expr]] = {}
        self._always: dict[tuple[Expr, bool], bool] = {}

    @cached_property
    def _asked(self) -> Questions:
        """Made when there is something to ask."""
        return Questions({})

    def implies(self, stronger: Rule, weaker: Rule) -> bool:
        """The stronger rule is violated wherever the weaker one is, as far as can be proved."""
        if not _covers(stronger, weaker):
            return False
        if _plainly(stronger, weaker):
            return True
        if not self._may_imply(stronger, weaker):
            return False
        return self._asked.always(_violated_too(stronger, weaker, self._asked)).yes

    def _may_imply(self, stronger: Rule, weaker: Rule) -> bool:
        """True if z3 could answer yes: the weaker rule must read the values that the stronger one
        reads.
        """
        known = self._reads_of(conditions(weaker))
        given = set(conjuncts(weaker.when))
        start = weaker.window.kind == "during"
        for part in conjuncts(stronger.when):
            shared = part in given or self._reads_of((part,)) & known
            if not shared and not self._is_always(part, start):
                return False
        if isinstance(stronger.expect, Holds):
            return bool(self._reads_of((stronger.expect.condition,)) & known)
        return claim_covers(stronger.expect, weaker.expect)

    def _reads_of(self, conditions: tuple[Expr, ...]) -> frozenset[Expr]:
        if conditions not in self._reads:
            self._reads[conditions] = frozenset(reads(conditions))
        return self._reads[conditions]

    def _is_always(self, part: Expr, start: bool) -> bool:
        """A condition that is true in every situation."""
        key = (part, start)
        if key not in self._always:
            self._always[key] = (
                may_be_decided((part,), {})
                and self._asked.always(self._asked.encoder.encode(part, start).true).yes
            )
        return self._always[key]


def _last(by: Mapping[int, int], place: int) -> int:
    """The rule at the end of a chain of implications, which is kept."""
    while place in by:
        place = by[place]
    return place


def _buckets(found: Sequence[Rule]) -> dict[Any, list[int]]:
    """The places of rules that may be about the same instances."""
    buckets: dict[Any, list[int]] = {}
    for place, rule in enumerate(found):
        key = _frame(with_names(rule, [f"v{n}" for n in range(len(rule.subjects))]))
        loose = (
            tuple(_unfiltered(each) for each in key[0]),
            key[1],
            replace(key[2], every=None, once=False),
        )
        buckets.setdefault((loose, type(rule.expect)), []).append(place)
    return buckets


# --- which instances ----------------------------------------------------------------------------


def _frame(rule: Rule) -> tuple[tuple[For, ...], Any, Window]:
    """The parts of a rule that determine its instances."""
    return rule.subjects, rule.across, rule.window


def _covers(stronger: Rule, weaker: Rule) -> bool:
    """Every instance of the weaker rule is one of the stronger, with the same history."""
    if stronger.across != weaker.across or not _same_kind(stronger, weaker):
        return False
    if _frame(stronger) == _frame(weaker):
        return True
    if any(
        isinstance(part, _LOOKING_BACK) or _in_time(part)
        for r in (stronger, weaker)
        for part in parts(r)
    ):
        return False
    return _window_covers(stronger.window, weaker.window) and _subjects_cover(stronger, weaker)


def _same_kind(stronger: Rule, weaker: Rule) -> bool:
    return isinstance(stronger.expect, Holds) == isinstance(weaker.expect, Holds)


_LOOKING_BACK = (rules.Previous, rules.First)


def _in_time(part: object) -> bool:
    return isinstance(part, rules.Fold) and part.scope == "time"


def _window_covers(stronger: Window, weaker: Window) -> bool:
    """True if the weaker windows are the stronger ones, or a thinned subset of them."""
    if replace(stronger, every=None, once=False) != replace(weaker, every=None, once=False):
        return False
    if stronger.once:
        return stronger == weaker
    if stronger.every is None or stronger.every == weaker.every:
        return True
    return (
        weaker.every is not None
        and stronger.every.unit == weaker.every.unit
        and weaker.every.count % stronger.every.count == 0
    )


def _subjects_cover(stronger: Rule, weaker: Rule) -> bool:
    """True if the subjects are the same, or fewer by more filters. Under `across`, the members that
    lack a subject would differ.
    """
    if stronger.subjects == weaker.subjects:
        return True
    if stronger.across or len(stronger.subjects) != len(weaker.subjects):
        return False
    return all(
        _unfiltered(strong) == _unfiltered(weak) and set(_filters(strong)) <= set(_filters(weak))
        for strong, weak in zip(stronger.subjects, weaker.subjects, strict=True)
    )


def _filters(clause: For) -> tuple[rules.Filter, ...]:
    return clause.collection.filters if isinstance(clause.collection, rules.Subjects) else ()


def _unfiltered(clause: For) -> For:
    if isinstance(clause.collection, rules.Subjects):
        return replace(clause, collection=replace(clause.collection, filters=()))
    return clause


# --- which verdict ------------------------------------------------------------------------------


def _plainly(stronger: Rule, weaker: Rule) -> bool:
    """The same claim under fewer conditions: no question is needed."""
    if not claim_covers(stronger.expect, weaker.expect):
        return False
    strong, weak = set(conjuncts(stronger.when)), set(conjuncts(weaker.when))
    return strong == weak if stronger.across else strong <= weak


def claim_covers(strong: Claim, weak: Claim) -> bool:
    """True if the stronger claim is violated wherever the weaker one is, by their form alone."""
    if isinstance(strong, Holds) and isinstance(weak, Holds):
        return set(conjuncts(weak.condition)) <= set(conjuncts(strong.condition))
    if isinstance(strong, Contains) and isinstance(weak, Contains):
        return _events_cover(strong.event, weak.event)
    return strong == weak


def _events_cover(stronger: EventPattern, weaker: EventPattern) -> bool:
    """True if each call that matches the stronger pattern matches the weaker one."""
    return set(stronger.events) <= set(weaker.events) and set(weaker.filters) <= set(
        stronger.filters
    )


def _violated_too(stronger: Rule, weaker: Rule, asked: Questions) -> z3.BoolRef:
    """The stronger rule is violated if the weaker one is."""
    encoder = asked.encoder
    due, also_due = (condition(each, encoder, each.when) for each in (weaker, stronger))
    if isinstance(stronger.expect, Holds) and isinstance(weaker.expect, Holds):
        broken = encoder.encode(weaker.expect.condition).false
        also_broken = encoder.encode(stronger.expect.condition).false
    else:
        broken = z3.BoolVal(True, encoder.context)
        also_broken = z3.BoolVal(claim_covers(stronger.expect, weaker.expect), encoder.context)
    follows = z3.Implies(z3.And(due.true, broken), z3.And(also_due.true, also_broken))
    if stronger.across:
        return z3.And(same_truth(due, also_due), follows)
    return follows


# --- names --------------------------------------------------------------------------------------


def renamed(rule: Rule, like: Rule) -> Rule:
    """The rule with the variables of another one."""
    if len(rule.subjects) != len(like.subjects):
        return rule
    return with_names(rule, [clause.variable for clause in like.subjects])


def with_names(rule: Rule, names: Sequence[str]) -> Rule:
    new = dict(zip((clause.variable for clause in rule.subjects), names, strict=True))
    changed = rebuild_rule(rule, lambda expr: transform(expr, lambda part: _renamed(part, new)))
    subjects = (replace(each, variable=new[each.variable]) for each in changed.subjects)
    return replace(changed, subjects=tuple(subjects))


def _renamed(part: Expr, names: Mapping[str, str]) -> Expr | None:
    if not isinstance(part, rules.Variable):
        return None
    return replace(part, name=names.get(part.name, part.name))
