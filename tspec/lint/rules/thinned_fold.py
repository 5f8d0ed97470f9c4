"""TS0423: a fold over time that sees one value, because the window is thinned as far as it looks back."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation, about
from tspec.lint.rule import LintRule
from tspec.resolve.program.rules import Fold


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for rule in checked.rules:
        every = rule.window.every
        if every is None:
            continue
        for part in checked.expressions(rule):
            if not isinstance(part, Fold) or part.over is None or part.over.unit != every.unit:
                continue
            if every.count > 1 and part.over.count <= every.count:
                message = (
                    f"`{rule.source.slice(part.span)}` sees one value: the rule is looked at "
                    f"every {every.count} {every.unit}s"
                )
                hint = f"look back over more than {every.count} {every.unit}s, or thin less"
                yield about(rule, message, part.span, hint)


RULE = LintRule("TS0423", "thinned-fold", check)
