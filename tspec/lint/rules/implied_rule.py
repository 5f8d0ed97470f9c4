"""TS0403: a rule that is violated only where another one is too."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.diagnostics import Related
from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation, about
from tspec.lint.rule import LintRule


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for weak, strong in checked.proofs.implied:
        if (weak, strong) in checked.proofs.repeated:
            continue  # Another lint rule reports repeated rules.
        message = f"`{weak.name}` says nothing that `{strong.name}` does not say"
        there = Related(strong.span, "wherever it is violated, this one is", strong.source)
        yield about(weak, message, hint="leave it out, or make it say more", related=(there,))


RULE = LintRule("TS0403", "implied-rule", check)
