"""What z3 says of the rules of a program, asked once and kept for all lint rules.

What can be seen without a question is: of many rules, few are worth one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from tspec.lint.leaves import entangled, something_may_follow
from tspec.lint.responses import strongest
from tspec.lint.shapes import Key, Shape, shape_of, stricter
from tspec.resolve.rules import Contains, EventPattern, Expr, Rule

if TYPE_CHECKING:
    from tspec.logic import Note

# tspec.logic imports z3, which rules that only look at the text do without.

Pair = tuple[Rule, Rule]
"""A rule that says nothing of its own, and one that is violated wherever it is."""


_ANYTHING = Contains(EventPattern(("anything",)))
"""A claim that says nothing about any condition."""


class Proofs:
    """Answers about some rules. What z3 cannot decide within its limit is not among them."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules
        self._never: dict[Shape, bool] = {}

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
        """What was found about a rule: `never due`, `always met` or `dropped`."""
        return tuple(note for note in self._notes.get(id(rule), ()) if note.kind == kind)

    def never(self, rule: Rule, condition: Expr) -> bool:
        """Whether a condition, read where the rule's `when` is, was proved never to be true."""
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
        """Rules that are violated only where another one is, which does as much about it.

        The other one is no draft unless the rule is one. Rules that can never be violated are left
        out: every rule would imply them.
        """
        repeated = {id(rule) for rule, _ in self.repeated}
        alive = [rule for rule in self._alive if id(rule) not in repeated]
        found = list(_by_thresholds(alive))
        done = {id(rule) for rule, _ in found}
        left = list(_first_of_each_shape([rule for rule in alive if id(rule) not in done]))
        return (*found, *_by_proof(left))

    @cached_property
    def repeated(self) -> tuple[Pair, ...]:
        """Rules that say what an earlier one says, whatever both do about it."""
        first: dict[Key, Rule] = {}
        found: list[Pair] = []
        for rule in self._alive:
            shape = shape_of(rule)
            earlier = first.setdefault((shape.key, shape.numbers), rule)
            if earlier is not rule:
                found.append((rule, earlier))
        left = list(_first_of_each_shape(list(first.values())))
        return (*found, *_proved_equal(left))

    @cached_property
    def _alive(self) -> list[Rule]:
        dead = ("never due", "always met")
        return [
            rule
            for rule in self._rules
            if not any(note.kind in dead for note in self._notes.get(id(rule), ()))
        ]


def _may_replace(strong: Rule, weak: Rule) -> bool:
    """Whether the weak rule is worth leaving out for the strong one."""
    return strongest(strong) >= strongest(weak) and (weak.draft or not strong.draft)


def _by_thresholds(found: Sequence[Rule]) -> Iterator[Pair]:
    """Rules of one shape, of which one has stricter thresholds."""
    by_shape: dict[Key, list[Rule]] = {}
    for rule in found:
        by_shape.setdefault(shape_of(rule).key, []).append(rule)
    for alike in by_shape.values():
        for weak in alike:
            strong = next(
                (
                    each
                    for each in alike
                    if each is not weak and _may_replace(each, weak) and stricter(each, weak)
                ),
                None,
            )
            if strong is not None:
                yield weak, strong


def _first_of_each_shape(found: Sequence[Rule]) -> Iterator[Rule]:
    """Rules of one shape were compared by their thresholds: one stands for all before z3."""
    seen: set[Key] = set()
    for rule in found:
        key = (shape_of(rule).key, rule.draft, strongest(rule))
        if key not in seen:
            seen.add(key)
            yield rule


def _by_proof(found: Sequence[Rule]) -> Iterator[Pair]:
    if len(found) < 2:
        return
    from tspec.logic import removes_implied

    accepted = [rule for rule in found if not rule.draft]
    for level in sorted({strongest(rule) for rule in accepted}):
        acting = [rule for rule in accepted if strongest(rule) >= level]
        for weak, strong in removes_implied(acting)[1]:
            if strongest(weak) == level:
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
