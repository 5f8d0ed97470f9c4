"""TS0408: a comparison that is false for NaN, and for nothing else."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.bounds import truth
from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation, about
from tspec.lint.rule import LintRule
from tspec.resolve.program.rules import Compare


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for rule in checked.rules:
        for part in checked.written(rule):
            if isinstance(part, Compare) and truth(part) == "but for nan":
                message = f"`{rule.source.slice(part.span)}` is false only for NaN"
                hint = "if NaN is meant, write `finite(...)`; if not, it says nothing"
                yield about(rule, message, part.span, hint)


RULE = LintRule("TS0408", "only-false-for-nan", check)
