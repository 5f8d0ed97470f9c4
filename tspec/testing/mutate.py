"""Mutation testing of rules: changes that no test notices.

A mutant is noticed if a test that passes with the rule fails with the mutant. A mutant that z3
proves equivalent to its rule does not count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tspec.check.interpret import decide_again, decide_rule
from tspec.resolve.program.rules import Program, Rule
from tspec.testing.judge import fails
from tspec.testing.mutants import Mutant, mutants
from tspec.testing.run import TestRun, rules_of, run


@dataclass(frozen=True, slots=True)
class RuleMutants:
    """The mutants of one rule: their number, those that no test notices, and the equivalent ones."""

    rule: Rule
    mutants: int
    survivors: tuple[Mutant, ...]
    equivalent: int
    tests: int
    """The number of tests that decide the rule."""


@dataclass(frozen=True, slots=True)
class MutationResult:
    """All rules, in source order."""

    rules: tuple[RuleMutants, ...]

    @property
    def total(self) -> int:
        """Mutants that could be noticed."""
        return sum(each.mutants - each.equivalent for each in self.rules)

    @property
    def noticed(self) -> int:
        """Mutants that a test notices."""
        return self.total - sum(len(each.survivors) for each in self.rules)

    @property
    def score(self) -> float:
        """In percent; 100 where nothing could be noticed."""
        return 100 * self.noticed / self.total if self.total else 100.0


def mutate(program: Program, wanted: Sequence[Rule]) -> MutationResult:
    """Change each of the wanted rules, and let the program's tests judge. Tests that fail do not count."""
    known = rules_of(program)
    test_run = [run(test, program, known) for test in program.tests]
    sound = [each for each in test_run if each.problem is None]
    return MutationResult(tuple(_mutated(rule, sound, known) for rule in wanted))


def _mutated(rule: Rule, test_run: Sequence[TestRun], known: Mapping[str, Rule]) -> RuleMutants:
    name = rule.qualified
    tests = [each for each in test_run if name in each.decisions and not fails(each, rule)]
    found = list(_distinct(rule))
    left = [each for each in found if not any(_noticed(each, test) for test in tests)]
    survivors = [each for each in left if not tests or not _says_the_same(each)]
    return RuleMutants(rule, len(found), tuple(survivors), len(left) - len(survivors), len(tests))


def _distinct(rule: Rule) -> Iterator[Mutant]:
    """Each changed rule once, whichever change makes it."""
    seen: list[Rule] = [rule]
    for each in mutants(rule):
        if each.rule not in seen:
            seen.append(each.rule)
            yield each


def _noticed(mutant: Mutant, test: TestRun) -> bool:
    """True if a test fails with the changed rule in place of the rule."""
    assert test.job is not None
    name = mutant.original.qualified
    if mutant.same_instances:
        decided = decide_again(mutant.rule, [grouped for grouped, _ in test.decisions[name]])
    else:
        decided = decide_rule(mutant.rule, test.job)
    return fails(replace(test, decisions={name: decided}), mutant.rule)


def _says_the_same(mutant: Mutant) -> bool:
    from tspec.logic import equivalent

    return equivalent(mutant.original, mutant.rule).yes
