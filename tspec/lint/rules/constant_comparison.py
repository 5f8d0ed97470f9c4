"""TS0407: a comparison that is true, or false, whatever the job does."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.bounds import Truth, truth
from tspec.lint.checked import Checked
from tspec.lint.conditions import conditions
from tspec.lint.finding import Found, about
from tspec.lint.rule import LintRule
from tspec.resolve.rules import Compare, Expr
from tspec.resolve.walk import walk


def compared(condition: Expr) -> Iterator[tuple[Compare, Truth]]:
    """The comparisons below a condition that come to the same in every situation."""
    for part in walk(condition):
        if isinstance(part, Compare):
            found = truth(part)
            if found is not None:
                yield part, found


def check(checked: Checked) -> Iterator[Found]:
    for rule in checked.rules:
        for condition in conditions(rule):
            for part, found in compared(condition):
                if found == "but for nan":
                    continue
                shown = rule.source.slice(part.span)
                word = "true" if found == "always" else "false"
                message = f"`{shown}` is always {word}"
                hint = "counts, norms and the like are never negative; `zeros` is a fraction"
                yield about(rule, message, part.span, hint)


RULE = LintRule("TS0407", "constant-comparison", check)
