"""Preconditions: conditions that separate the instances where a claim holds from those where it
does not.

Sets of instances are integers used as bitsets (bit i is instance i), so that a conjunction is one
`&` however many instances there are. The search is TrainCheck's (sections 3.6 and 3.7):
conjunctions of conditions that hold wherever the claim does, then a disjunction over the remaining
instances. Conditions that exclude nothing are pruned, and there is no precondition where none is
safe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

MOST_CONDITIONS = 3
MOST_ALTERNATIVES = 2
LEAST_SUPPORT = 5
"""The least number of instances of an alternative of a disjunction. With fewer, it is a
coincidence.
"""


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition as text, with the set of instances for which it is true."""

    text: str
    true: int


@dataclass(frozen=True, slots=True)
class Precondition:
    """All conjuncts and at least one alternative must hold. Without conjuncts and alternatives it is always true."""

    conjuncts: tuple[str, ...]
    alternatives: tuple[str, ...]
    true: int
    """The instances that it selects."""

    def under(self, guard: str | None = None) -> str | None:
        """The condition in the language, or None where the rule needs none.

        A guard that the claim needs is the first conjunct of the whole, so that its facts are known
        in every alternative. Each conjunct occurs once.
        """
        single = self.alternatives if len(self.alternatives) == 1 else ()
        parts = [part for part in (guard, *self.conjuncts, *single) if part]
        conjuncts = dict.fromkeys(each for part in parts for each in part.split(" and "))
        if single or not self.alternatives:
            return " and ".join(conjuncts) or None
        choice = " or ".join(self.alternatives)
        return " and ".join([*conjuncts, f"({choice})"]) if conjuncts else choice


def deduce(holds: int, violated: int, conditions: Sequence[Condition]) -> Precondition | None:
    """The most general safe precondition that the search finds, or None.

    `holds` and `violated` are disjoint sets of instances. Conditions come most general first: of two
    that separate equally well the earlier is taken, so that the result does not depend on chance.
    """
    everything = holds | violated
    if not violated:
        return Precondition((), (), everything)
    covering = [c for c in conditions if not holds & ~c.true]
    chosen, left = _exclude(violated, covering)
    conjuncts = tuple(c.text for c in chosen)
    selected = _meet(everything, chosen)
    if not left:
        return Precondition(conjuncts, (), selected)
    alternatives = _cover(holds & selected, left, [c for c in conditions if c not in covering])
    if not alternatives:
        return None
    union = 0
    for alternative in alternatives:
        union |= alternative.true
    return Precondition(conjuncts, tuple(a.text for a in alternatives), selected & union)


def _meet(everything: int, conditions: Sequence[Condition]) -> int:
    for condition in conditions:
        everything &= condition.true
    return everything


def _exclude(violated: int, covering: Sequence[Condition]) -> tuple[list[Condition], int]:
    """A few covering conditions that exclude as many violations as possible, and the violations
    that remain.
    """
    chosen: list[Condition] = []
    while violated and len(chosen) < MOST_CONDITIONS and covering:
        best = min(covering, key=lambda c: (violated & c.true).bit_count())
        if violated & best.true == violated:
            break
        chosen.append(best)
        violated &= best.true
    return chosen, violated


def _cover(holds: int, violated: int, conditions: Sequence[Condition]) -> list[Condition]:
    """Safe conditions that together cover the most of `holds`, widest first."""
    safe = [c for c in conditions if not c.true & violated]
    alternatives: list[Condition] = []
    while holds and len(alternatives) < MOST_ALTERNATIVES and safe:
        best = max(safe, key=lambda c: (c.true & holds).bit_count())
        if (best.true & holds).bit_count() < LEAST_SUPPORT:
            break
        alternatives.append(best)
        holds &= ~best.true
    return alternatives
