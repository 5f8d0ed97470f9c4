"""Drops the parts of a rule that the rest implies; no verdict changes.

z3 only decides whether a shorter form is equivalent: the text that is left is the author's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Literal

import z3

from tspec.logic.overlap import may_be_decided, may_follow
from tspec.logic.questions import Questions
from tspec.logic.verdict import condition, same_truth, verdict
from tspec.resolve.program import rules, types
from tspec.resolve.program.queries import conditions
from tspec.resolve.program.rules import Axis, Expr, Holds, OnlyDuring, Rule
from tspec.resolve.program.text import text
from tspec.resolve.program.walk import parts

Given = Mapping[str, bool | int | str]

MOST = 100
"""The most conditions of a rule that is simplified: each is a question whose length grows with all of them."""

NoteKind = Literal["dropped", "always idle", "never due", "always met", "implied"]


@dataclass(frozen=True, slots=True)
class Note:
    """A fact about a rule.

    `dropped`: a part that the others imply (`subject` is its text). `always idle`: with the given
    values nothing is left to check. `never due`: its `when` is never true. `always met`: its
    `expect` is never false. `implied`: another rule (`subject`) is violated wherever this one is.
    """

    kind: NoteKind
    rule: Rule
    subject: str = ""

    @property
    def message(self) -> str:
        """One sentence."""
        name = self.rule.qualified
        return {
            "dropped": f"`{name}`: `{self.subject}` follows from the rest and is left out",
            "always idle": f"`{name}` has nothing to check: {self.subject}",
            "never due": f"`{name}` is never due: its `when` cannot be true",
            "always met": f"`{name}` cannot be violated: its `expect` is never false when it is due",
            "implied": f"`{name}` says nothing that `{self.subject}` does not say",
        }[self.kind]


@dataclass(frozen=True, slots=True)
class Simplified:
    """An equivalent rule, and the notes. `idle`: with the given values it never fires."""

    rule: Rule
    notes: tuple[Note, ...] = ()
    idle: bool = False


def simplify(rule: Rule, given: Given) -> Simplified:
    """Drop the parts of a rule that other parts imply.

    `given` fixes sizes of groups (`tp=1`) and context values (`cuda.available=false`). Every
    verdict stays the same in each job that has these values.
    """
    alone = [
        axis.name for axis in rule.across if isinstance(axis, Axis) and given.get(axis.name) == 1
    ]
    if rule.across and len(alone) == len(rule.across):
        why = f"a group of one rank on {', '.join(alone)}"
        return Simplified(rule, (Note("always idle", rule, why),), idle=True)
    ambient = _ambient(rule, given)
    if sum(map(_count, conditions(rule))) > MOST:
        return Simplified(rule)
    if not (may_be_decided(conditions(rule), ambient)):
        return Simplified(rule)  # Reads that occur once and have no bounds: nothing follows.
    asked = Questions(ambient)
    found = _never(rule, ambient, asked)
    if found is not None:
        return found
    notes: list[Note] = []
    simpler = rule
    while True:
        shorter = next(_accepted(simpler, ambient, asked), None)
        if shorter is None:
            return Simplified(simpler, tuple(notes))
        simpler, dropped = shorter
        notes.append(Note("dropped", rule, text(dropped)))


def _ambient(rule: Rule, given: Given) -> dict[str, bool | int | str]:
    """The given context values that have the right type."""
    found = {}
    for part in parts(rule):
        if isinstance(part, rules.Ambient) and part.name in given:
            value = given[part.name]
            fits = isinstance(value, str)
            if part.type == types.BOOL:
                fits = isinstance(value, bool)
            elif part.type in (types.INT, types.FLOAT):
                fits = isinstance(value, int) and not isinstance(value, bool)
            if fits:
                found[part.name] = value
    return found


# --- rules that never fire ----------------------------------------------------------------------


def _never(rule: Rule, given: Given, asked: Questions) -> Simplified | None:
    """The simplified rule if it is never due, or never violated when due. None otherwise."""
    if rule.when is not None and may_be_decided((rule.when,), given):
        if _is_never_true(rule, Questions({}) if given else asked):
            return Simplified(rule, (Note("never due", rule),))
        if given and _is_never_true(rule, asked):
            shown = ", ".join(f"{name} is {show(value)}" for name, value in sorted(given.items()))
            return Simplified(rule, (Note("always idle", rule, shown),), idle=True)
    if isinstance(rule.expect, Holds) and may_be_decided(conditions(rule), given):
        due = condition(rule, asked.encoder, rule.when)
        expected = asked.encoder.encode(rule.expect.condition)
        if asked.always(z3.Not(verdict(due, expected).violated)).yes:
            return Simplified(rule, (Note("always met", rule),))
    return None


def _is_never_true(rule: Rule, asked: Questions) -> bool:
    due = condition(rule, asked.encoder, rule.when)
    return asked.always(z3.Not(due.true)).yes


def show(value: bool | int | str) -> str:
    """A given value as it was given."""
    return str(value).lower() if isinstance(value, bool) else str(value)


# --- shorter forms ------------------------------------------------------------------------------


def _accepted(rule: Rule, given: Given, asked: Questions) -> Iterator[tuple[Rule, Expr]]:
    """Each equivalent shorter form of a rule, with the dropped part."""
    for when, dropped in _shorter(rule.when):
        if when is None and not isinstance(rule.expect, Holds | OnlyDuring):
            continue  # Without `when`, a window that is cut off would be decided early.
        if not may_follow(dropped, conditions(replace(rule, when=when)), given):
            continue
        if _alike(rule, replace(rule, when=when), asked):
            yield replace(rule, when=when), dropped
    if isinstance(rule.expect, Holds):
        for expect, dropped in _shorter(rule.expect.condition):
            if expect is not None:
                candidate = replace(rule, expect=Holds(expect))
                if may_follow(dropped, conditions(candidate), given) and _alike(
                    rule, candidate, asked
                ):
                    yield candidate, dropped


def _count(expr: Expr) -> int:
    """The number of conditions that an expression joins."""
    match expr:
        case rules.And(items=items) | rules.Or(items=items):
            return sum(map(_count, items))
        case rules.Not(value=value):
            return _count(value)
        case rules.Implies(left=left, right=right):
            return _count(left) + _count(right)
        case _:
            return 1


def _shorter(expr: Expr | None) -> Iterator[tuple[Expr | None, Expr]]:
    """An expression without one of its parts, and the part; the later parts go first."""
    if expr is None:
        return
    yield from _shorter_inside(expr)
    yield None, expr


def _shorter_inside(expr: Expr) -> Iterator[tuple[Expr, Expr]]:
    match expr:
        case rules.And(items=items) | rules.Or(items=items):
            for place in reversed(range(len(items))):
                rest = items[:place] + items[place + 1 :]
                yield rest[0] if len(rest) == 1 else replace(expr, items=rest), items[place]
            for place, item in enumerate(items):
                for shorter, dropped in _shorter_inside(item):
                    inside = (*items[:place], shorter, *items[place + 1 :])
                    yield replace(expr, items=inside), dropped
        case rules.Not(value=value):
            for shorter, dropped in _shorter_inside(value):
                yield replace(expr, value=shorter), dropped
        case rules.Implies(left=left, right=right):
            yield right, left
            for shorter, dropped in _shorter_inside(left):
                yield replace(expr, left=shorter), dropped
            for shorter, dropped in _shorter_inside(right):
                yield replace(expr, right=shorter), dropped


def _alike(rule: Rule, other: Rule, asked: Questions) -> bool:
    """Both forms give every instance the same verdict."""
    encoder = asked.encoder
    due, also_due = (condition(each, encoder, each.when) for each in (rule, other))
    if not (isinstance(rule.expect, Holds) and isinstance(other.expect, Holds)):
        return asked.always(same_truth(due, also_due)).yes
    met = encoder.encode(rule.expect.condition)
    also_met = encoder.encode(other.expect.condition)
    if rule.across:
        # On each member alone, as `when` may not differ between members.
        alike = z3.And(same_truth(due, also_due), z3.Implies(due.true, same_truth(met, also_met)))
    else:
        first, second = verdict(due, met), verdict(also_due, also_met)
        alike = z3.And(
            first.holds == second.holds,
            first.violated == second.violated,
            first.idle == second.idle,
        )
    return asked.always(alike).yes
