"""TS0433: a rule across ranks that compares no rank with another."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation, about
from tspec.lint.rule import LintRule
from tspec.resolve.program.rules import Fold, Transpose
from tspec.resolve.program.walk import parts


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for rule in checked.rules:
        if not rule.across:
            continue
        folds = any(
            isinstance(part, Transpose) or (isinstance(part, Fold) and part.scope == "group")
            for part in parts(rule)
        )
        if not folds:
            message = "no value of one rank is compared with that of another"
            hint = "leave out `across`: each rank looks by itself; or write `same(...)`"
            yield about(rule, message, rule.spans.across, hint)


RULE = LintRule("TS0433", "nothing-compared", check)
