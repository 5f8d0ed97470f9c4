"""Answers of z3 about the rules of a program, asked once for all lint rules.

Most rules need no question, as their text decides it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from tspec.builtin.actions import strength
from tspec.lint.operands import entangled, something_may_follow
from tspec.lint.shapes import Key, RuleShape, kind_of, shape_of, stricter
from tspec.resolve.program.queries import acts_as_much
from tspec.resolve.program.rules import Contains, EventPattern, Expr, Rule

if TYPE_CHECKING:
    from tspec.logic import Note

# tspec.logic imports z3, which rules that only look at the text do without.

NEAR = 50
"""The number of neighbours in order with which a rule is compared, if very many rules have its
shape.
"""

Pair = tuple[Rule, Rule]
"""A rule that is implied, and the rule that is violated wherever it is."""


_ANYTHING = Contains(EventPattern(("anything",)))
"""A claim that implies nothing about conditions."""


class Proofs:
    """Answers about some rules. Questions that z3 cannot decide within its limit have none."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self._never: dict[RuleShape, bool] = {}

    @cached_property
    def _notes(self) -> dict[int, tuple[Note, ...]]:
        worth = [rule for rule in self._rules if something_may_follow(rule)]
        if not worth:
            return {}
        from tspec.logic import simplify

        asked: dict[object, tuple[Note, ...]] = {}
        found = {}
        for rule in worth:
            core = entangled(rule)
            key = (shape_of(core), tuple(clause.variable for clause in rule.subjects))
            if key not in asked:
                asked[key] = simplify(core, {}).notes
            found[id(rule)] = asked[key]
        return found

    def notes(self, rule: Rule, kind: str) -> tuple[Note, ...]:
        """Notes about a rule: `never due`, `always met` or `dropped`."""
        return tuple(note for note in self._notes.get(id(rule), ()) if note.kind == kind)

    def never(self, rule: Rule, condition: Expr) -> bool:
        """True if a condition, in the place of the rule's `when`, was proved never to be true."""
        from tspec.logic import simplify

        asked = replace(rule, when=condition, expect=_ANYTHING)
        key = shape_of(asked)
        if key not in self._never:
            notes = simplify(asked, {}).notes
            self._never[key] = any(note.kind == "never due" for note in notes)
        return self._never[key]

    # --- one rule and another -------------------------------------------------------------------

    @cached_property
    def implied(self) -> tuple[Pair, ...]:
        """Rules implied by another rule that acts at least as strongly, and as soon. A draft implies
        only drafts.

        Rules that can never be violated are left out: every rule would imply them.
        """
        repeated = {id(rule) for rule, _ in self.repeated}
        alive = [rule for rule in self._alive if id(rule) not in repeated]
        found = list(_by_thresholds(alive))
        done = {id(rule) for rule, _ in found}
        left = [rule for rule in alive if id(rule) not in done]
        found += _for_all_of_a_kind(_by_proof(_first_of_each_kind(left)), left)
        return tuple((weak, strong) for weak, strong in found if acts_as_much(strong, weak))

    @cached_property
    def repeated(self) -> tuple[Pair, ...]:
        """Rules that have the verdicts of an earlier one; their actions may differ."""
        first: dict[Key, Rule] = {}
        found: list[Pair] = []
        for rule in self._alive:
            shape = shape_of(rule)
            earlier = first.setdefault((shape.key, shape.numbers), rule)
            if earlier is not rule:
                found.append((rule, earlier))
        return (*found, *_proved_equal(_first_of_each_kind(list(first.values()))))

    @cached_property
    def _alive(self) -> list[Rule]:
        dead = ("never due", "always met")
        return [
            rule
            for rule in self._rules
            if not any(note.kind in dead for note in self._notes.get(id(rule), ()))
        ]


def _may_replace(strong: Rule, weak: Rule) -> bool:
    """True if the weak rule may be left out in favour of the strong one."""
    return _strongest(strong) >= _strongest(weak) and (weak.draft or not strong.draft)


def _by_thresholds(found: Sequence[Rule]) -> Iterator[Pair]:
    """Rules of one shape, one with stricter thresholds than the other."""
    by_shape: dict[Key, list[Rule]] = {}
    for rule in found:
        by_shape.setdefault(shape_of(rule).key, []).append(rule)
    for alike in by_shape.values():
        ordered = sorted(alike, key=lambda rule: shape_of(rule).numbers)
        for place, weak in enumerate(ordered):
            near = ordered[max(0, place - NEAR) : place + NEAR + 1]
            strong = next(
                (each for each in near if each is not weak and _says_more(each, weak)), None
            )
            if strong is not None:
                yield weak, strong


def _says_more(strong: Rule, weak: Rule) -> bool:
    return _may_replace(strong, weak) and stricter(strong, weak)


def _kind(rule: Rule) -> Key:
    return (kind_of(rule), rule.draft, _strongest(rule))


def _first_of_each_kind(found: Sequence[Rule]) -> list[Rule]:
    """The first rule of each kind. It stands for all rules that differ from it in numbers, texts,
    classes and events only.
    """
    first: dict[Key, Rule] = {}
    for rule in found:
        first.setdefault(_kind(rule), rule)
    return list(first.values())


def _for_all_of_a_kind(pairs: Iterable[Pair], found: Sequence[Rule]) -> Iterator[Pair]:
    """The pairs, and pairs of the same stronger rule with others of the weaker rule's kind that it
    implies too.
    """
    by_kind: dict[Key, list[Rule]] = {}
    for rule in found:
        by_kind.setdefault(_kind(rule), []).append(rule)
    for weak, strong in pairs:
        from tspec.logic import implies

        yield weak, strong
        for other in by_kind[_kind(weak)]:
            if other is not weak and other is not strong and implies(strong, other).yes:
                yield other, strong


def _by_proof(found: Sequence[Rule]) -> Iterator[Pair]:
    if len(found) < 2:
        return
    from tspec.logic import removes_implied

    accepted = [rule for rule in found if not rule.draft]
    for level in sorted({_strongest(rule) for rule in accepted}):
        acting = [rule for rule in accepted if _strongest(rule) >= level]
        for weak, strong in removes_implied(acting)[1]:
            if _strongest(weak) == level:
                yield weak, strong
    if len(accepted) < len(found):
        for weak, strong in removes_implied(found)[1]:
            if weak.draft:
                yield weak, strong


def _proved_equal(found: Sequence[Rule]) -> Iterator[Pair]:
    if len(found) < 2:
        return
    from tspec.logic import equivalent, removes_implied

    for rule, other in removes_implied(found)[1]:
        if equivalent(rule, other).yes:
            yield rule, other


def _strongest(rule: Rule) -> int:
    return max(strength(each.action) for each in rule.responses)
