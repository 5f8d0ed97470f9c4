"""TS0414: `expect a implies b`, although `when a` would show vacuous instances."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import CheckedProgram
from tspec.lint.conditions import bare, is_written
from tspec.lint.finding import Edit, LintViolation, SuggestedFix, about
from tspec.lint.rule import LintRule
from tspec.resolve.program.rules import Holds, Implies, Rule


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for rule in checked.rules:
        # `during` reads its `when` as the call begins; members of a group may differ on a claim.
        if rule.when is not None or rule.window.kind == "during" or rule.across:
            continue
        claim = rule.expect.condition if isinstance(rule.expect, Holds) else None
        if not isinstance(claim, Implies) or not is_written(claim):
            continue
        yield about(
            rule,
            "a condition of `expect` counts as met where `implies` does not apply",
            claim.span,
            f"write `when {rule.source.slice(claim.left.span)}`: then the rule is idle there, and a rule "
            "that is always idle is reported",
            _fix(rule, claim),
        )


def _fix(rule: Rule, claim: Implies) -> SuggestedFix | None:
    expect = rule.spans.expect
    if expect is None or "//" in rule.source.slice(expect):
        return None
    left = rule.source.slice(bare(rule.source, claim.left.span))
    right = rule.source.slice(bare(rule.source, claim.right.span))
    text = f"when {left}\n  expect {right}"
    return SuggestedFix("write it as `when`", (Edit(expect, text),), safe=False)


RULE = LintRule("TS0414", "implication-for-when", check)
