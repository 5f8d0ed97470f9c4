"""What z3 says of the rules of a program, asked once and kept for all lint rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from tspec.lint.responses import strongest
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
        """Rules that say nothing of their own, each with one that is violated wherever it is.

        The other one does as much about it, and is no draft unless the rule itself is one. Rules
        that can never be violated are left out: every rule would imply them.
        """
        from tspec.logic import removes_implied

        live = [rule for rule in self._rules if not self._is_dead(rule)]
        found: list[tuple[Rule, Rule]] = []
        accepted = [rule for rule in live if not rule.draft]
        for level in sorted({strongest(rule) for rule in accepted}):
            acting = [rule for rule in accepted if strongest(rule) >= level]
            pairs = removes_implied(acting)[1]
            found += [pair for pair in pairs if strongest(pair[0]) == level]
        if len(accepted) < len(live):
            found += [pair for pair in removes_implied(live)[1] if pair[0].draft]
        return tuple(found)

    @cached_property
    def repeated(self) -> tuple[tuple[Rule, Rule], ...]:
        """Rules that were proved to say what an earlier one says, whatever they do about it."""
        from tspec.logic import equivalent, removes_implied

        live = [rule for rule in self._rules if not self._is_dead(rule)]
        pairs = dict.fromkeys((*removes_implied(live)[1], *self.implied))
        return tuple(pair for pair in pairs if equivalent(*pair).yes)

    def _is_dead(self, rule: Rule) -> bool:
        return bool(self.notes(rule, "never due") or self.notes(rule, "always met"))

    def never(self, rule: Rule, condition: Expr) -> bool:
        """Whether a condition, read where the rule's `when` is, was proved never to be true."""
        from tspec.logic import simplify

        found = simplify(replace(rule, when=condition), {})
        return any(note.kind == "never due" for note in found.notes)
