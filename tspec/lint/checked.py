"""The input of lint rules: the files asked for by name, their rules, and all files read with them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from tspec.lint.conditions import expressions
from tspec.lint.proofs import Proofs
from tspec.lint.settings import Settings
from tspec.resolve.load import Loaded
from tspec.resolve.modules.files import Unit
from tspec.resolve.outline import Outline, OutlinedDeclaration, SpannedComment, comments, outline
from tspec.resolve.program.rules import Expr, LayoutDeclaration, Program, Rule
from tspec.resolve.program.trials import EquivalenceDeclaration
from tspec.source import Source, Span


class CheckedProgram:
    """A loaded program without errors, with the results that several lint rules share."""

    def __init__(self, loaded: Loaded, settings: Settings) -> None:
        assert loaded.program is not None
        self.program: Program = loaded.program
        self.units: tuple[Unit, ...] = loaded.units
        self.settings = settings
        self._expressions: dict[int, tuple[Expr, ...]] = {}

    @cached_property
    def all_files(self) -> tuple[Outline, ...]:
        """All files that were read."""
        return tuple(map(outline, self.units))

    @cached_property
    def files(self) -> tuple[Outline, ...]:
        """The files that were asked for by name: findings are about these alone."""
        given = {unit.key for unit in self.units if unit.given}
        return tuple(file for file in self.all_files if file.key in given)

    @cached_property
    def comments(self) -> tuple[tuple[Source, SpannedComment], ...]:
        """The comments of `files` that speak to tspec, each with its file."""
        return tuple(
            (unit.source, comment)
            for unit in self.units
            if unit.given and "tspec:" in unit.source.text
            for comment in comments(unit)
        )

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """The rules of `files`."""
        sources = {id(file.source) for file in self.files}
        return tuple(rule for rule in self.program.rules if id(rule.source) in sources)

    @cached_property
    def layouts(self) -> tuple[LayoutDeclaration, ...]:
        """The layouts of `files`."""
        sources = {id(file.source) for file in self.files}
        return tuple(each for each in self.program.layouts if id(each.source) in sources)

    @cached_property
    def equivalences(self) -> tuple[EquivalenceDeclaration, ...]:
        """The equivalences of `files`."""
        sources = {id(file.source) for file in self.files}
        return tuple(each for each in self.program.equivalences if id(each.source) in sources)

    def expressions(self, rule: Rule) -> tuple[Expr, ...]:
        """All expressions in a rule's `when` and `expect`, worked out once."""
        if id(rule) not in self._expressions:
            self._expressions[id(rule)] = tuple(expressions(rule))
        return self._expressions[id(rule)]

    def written(self, rule: Rule) -> tuple[Expr, ...]:
        """The expressions of a rule that are written in it, without parts of inlined `let`s.

        All parts of an inlined `let` have the span of its name, so the largest of one span is
        taken.
        """
        first: dict[Span, Expr] = {}
        for part in self.expressions(rule):
            first.setdefault(part.span, part)
        return tuple(first.values())

    @cached_property
    def proofs(self) -> Proofs:
        """Answers of z3 about the rules, computed when a lint rule first asks."""
        return Proofs(self.rules)

    @cached_property
    def by_module(self) -> dict[str, Outline]:
        """Files by the name of their module."""
        return {file.name: file for file in self.all_files if file.name}

    @cached_property
    def shared(self) -> frozenset[str]:
        """Keys of shared files: shipped files, and files that another file uses.

        Uses in files of tests alone do not count.
        """
        users = [file for file in self.all_files if not _only_tests(file)]
        used = {use.module.text for file in users for use in file.uses}
        return frozenset(
            file.key
            for file in self.all_files
            if file.name in used or file.name.split(".")[0] in ("std", "specs")
        )

    def declarations(self) -> Iterator[tuple[Outline, OutlinedDeclaration]]:
        """The declarations of `files`, each with its file."""
        for file in self.files:
            for declared in file.declarations:
                yield file, declared


def _only_tests(file: Outline) -> bool:
    return bool(file.declarations) and all(
        each.kind in ("test", "let") for each in file.declarations
    )
