"""TS0471: an equivalence that says something that cannot be run."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.equivalence.refused import refusals
from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation
from tspec.lint.rule import LintRule


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for each in checked.equivalences:
        for refusal in refusals(each):
            message = f"`{each.name}` cannot be run: {refusal.message}"
            yield LintViolation(message, each.source, refusal.span)


RULE = LintRule("TS0471", "refused-equivalence", check)
