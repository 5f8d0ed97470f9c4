"""What z3 says of the rules of a program, asked once and kept for all lint rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from tspec.resolve.rules import Expr, Rule

if TYPE_CHECKING:
    from tspec.logic import Note, Simplified

# tspec.logic imports z3, which rules that only look at the text do without.


class Proofs:
    """Answers about some rules. What z3 cannot decide within its limit is not among them."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = rules

    @cached_property
    def _simplified(self) -> dict[int, Simplified]:
        from tspec.logic import simplify

        return {id(rule): simplify(rule, {}) for rule in self._rules}

    def notes(self, rule: Rule, kind: str) -> tuple[Note, ...]:
        """What was found about a rule: `never due`, `always met` or `dropped`."""
        return tuple(note for note in self._simplified[id(rule)].notes if note.kind == kind)

    @cached_property
    def implied(self) -> tuple[tuple[Rule, Rule], ...]:
        """Rules that say nothing of their own, each with one that is violated wherever it is."""
        from tspec.logic import removes_implied

        return removes_implied(self._rules)[1]

    def equivalent(self, first: Rule, second: Rule) -> bool:
        """Whether both were proved to give every instance the same verdict."""
        from tspec.logic import equivalent

        return equivalent(first, second).yes

    def never(self, rule: Rule, condition: Expr) -> bool:
        """Whether a condition, read where the rule's `when` is, was proved never to be true."""
        from tspec.logic import simplify

        found = simplify(replace(rule, when=condition), {})
        return any(note.kind == "never due" for note in found.notes)
