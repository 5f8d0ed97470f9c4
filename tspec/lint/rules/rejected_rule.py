"""TS0481: a draft that was rejected and is still in a file."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.diagnostics import Related
from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation, about
from tspec.lint.rule import LintRule


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    rejected = {
        rejection.name.text: (file.source, rejection)
        for file in checked.all_files
        for rejection in file.of("reject")
    }
    for rule in checked.rules:
        if rule.name in rejected:
            source, rejection = rejected[rule.name]
            message = f"`{rule.name}` was rejected, and is here"
            there = Related(rejection.name.span, rejection.because, source)
            yield about(rule, message, rule.span, "delete one of the two", related=(there,))


RULE = LintRule("TS0481", "rejected-rule", check)
