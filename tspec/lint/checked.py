"""What lint rules look at: the files asked for by name, their rules, and all that was read with them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from tspec.lint.conditions import expressions
from tspec.lint.proofs import Proofs
from tspec.lint.settings import Settings
from tspec.resolve.load import Loaded
from tspec.resolve.modules.files import Unit
from tspec.resolve.program.rules import Expr, Program, Rule
from tspec.source import Span
from tspec.syntax import nodes


class Checked:
    """A loaded program without errors, and what is worked out of it once for all lint rules."""

    def __init__(self, loaded: Loaded, settings: Settings) -> None:
        assert loaded.program is not None
        self.program: Program = loaded.program
        self.units: tuple[Unit, ...] = loaded.units
        """All files that were read."""
        self.settings = settings
        self._expressions: dict[int, tuple[Expr, ...]] = {}

    @cached_property
    def files(self) -> tuple[Unit, ...]:
        """The files that were asked for by name: findings are about these alone."""
        return tuple(unit for unit in self.units if unit.given)

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The rules of `files`."""
        sources = {id(unit.source) for unit in self.files}
        return tuple(rule for rule in self.program.rules if id(rule.source) in sources)

    def expressions(self, rule: Rule) -> tuple[Expr, ...]:
        """All expressions in a rule's `when` and `expect`, worked out once."""
        if id(rule) not in self._expressions:
            self._expressions[id(rule)] = tuple(expressions(rule))
        return self._expressions[id(rule)]

    def written(self, rule: Rule) -> tuple[Expr, ...]:
        """Those that somebody wrote as they stand there: not the parts of what a `let` holds.

        All of an inlined `let` stands where its name does, so that of one place the largest counts.
        """
        first: dict[Span, Expr] = {}
        for part in self.expressions(rule):
            first.setdefault(part.span, part)
        return tuple(first.values())

    @cached_property
    def proofs(self) -> Proofs:
        """What z3 says of the rules; it is asked when the first lint rule wants to know."""
        return Proofs(self.rules)

    @cached_property
    def by_module(self) -> dict[str, Unit]:
        """Files by the name of their module."""
        return {unit.name: unit for unit in self.units if unit.name}

    @cached_property
    def shared(self) -> frozenset[str]:
        """Keys of the files that others build on: shipped ones, and those that another file uses.

        A file of tests alone builds on nothing.
        """
        users = [unit for unit in self.units if not _only_tests(unit)]
        used = {use.module.text for unit in users for use in unit.file.uses}
        return frozenset(
            unit.key
            for unit in self.units
            if unit.name in used or unit.name.split(".")[0] in ("std", "specs")
        )

    def declarations(self) -> Iterator[tuple[Unit, nodes.Declaration]]:
        """The declarations of `files`, each with its file."""
        for unit in self.files:
            for node in unit.file.declarations:
                yield unit, node


def _only_tests(unit: Unit) -> bool:
    declared = unit.file.declarations
    return bool(declared) and all(isinstance(node, nodes.Test | nodes.Let) for node in declared)
