"""TS0402: an `expect` that no situation makes false."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation, about
from tspec.lint.rule import LintRule
from tspec.lint.rules.constant_comparison import compared
from tspec.lint.rules.self_comparison import compares_itself
from tspec.resolve.program.queries import conditions


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for rule in checked.rules:
        if not checked.proofs.notes(rule, "always met"):
            continue
        if any(truth for each in conditions(rule) for _, truth in compared(each)):
            continue  # The comparison itself is a finding.
        if any(compares_itself(part) for part in checked.expressions(rule)):
            continue
        message = f"`{rule.name}` cannot be violated: its `expect` is never false when it is due"
        hint = "it follows from `when`" if rule.when is not None else "it is true of all numbers"
        yield about(rule, message, rule.spans.claim, hint)


RULE = LintRule("TS0402", "always-met", check)
