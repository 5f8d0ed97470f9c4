"""TS0401: a `when` that no situation makes true."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from tspec.diagnostics import Related
from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation, about
from tspec.lint.rule import LintRule
from tspec.lint.rules.constant_comparison import compared
from tspec.resolve.program import types
from tspec.resolve.program.queries import conjuncts
from tspec.resolve.program.rules import And, Rule

MOST_PARTS = 8


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for rule in checked.rules:
        if rule.when is None or not checked.proofs.notes(rule, "never due"):
            continue
        if any(truth == "never" for _, truth in compared(rule.when)):
            continue  # The comparison itself is a finding.
        message = f"`{rule.name}` is never due: its `when` cannot be true"
        related = _conflict(rule, checked)
        hint = "one of them is meant otherwise" if related else None
        yield about(rule, message, rule.spans.condition, hint, related=related)


def _conflict(rule: Rule, checked: CheckedProgram) -> tuple[Related, ...]:
    """Two parts that exclude each other."""
    parts = conjuncts(rule.when)
    if len(parts) > MOST_PARTS:
        return ()
    for one, other in combinations(parts, 2):
        if checked.proofs.never(rule, And(types.BOOL, one.span, (one, other))):
            return (Related(one.span, "this"), Related(other.span, "excludes this"))
    return ()


RULE = LintRule("TS0401", "never-due", check)
