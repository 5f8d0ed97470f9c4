"""TS0404: two rules that give every instance the same verdict."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.diagnostics import Related
from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation, about
from tspec.lint.rule import LintRule


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for rule, first in checked.proofs.repeated:
        message = f"`{rule.name}` says the same as `{first.name}`"
        hint = "leave one out; one rule can have several actions"
        there = Related(first.span, "the other one", first.source)
        yield about(rule, message, hint=hint, related=(there,))


RULE = LintRule("TS0404", "repeated-rule", check)
