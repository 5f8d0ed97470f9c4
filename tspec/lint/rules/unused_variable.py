"""TS0462: a `for` variable that the rule never names."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation, about
from tspec.lint.rule import LintRule
from tspec.resolve.program.rules import Calls, Variable
from tspec.resolve.program.walk import parts


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for rule in checked.rules:
        named = {part.name for part in parts(rule) if isinstance(part, Variable)}
        for clause, span in zip(rule.subjects, rule.spans.variables, strict=True):
            if isinstance(clause.collection, Calls) and rule.window.kind == "calls":
                continue  # The calls are its windows.
            name = clause.variable
            if name in named:
                continue
            message = f"`{name}` is never named: every one of them gets the same verdict"
            hint = "leave out the clause, or say something of it"
            yield about(rule, message, span, hint)


RULE = LintRule("TS0462", "unused-variable", check)
