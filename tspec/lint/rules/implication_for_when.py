"""TS0414: `expect a implies b` where `when a` would tell vacuous rules."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import Checked
from tspec.lint.conditions import bare
from tspec.lint.finding import Edit, Fix, Found, about
from tspec.lint.rule import LintRule
from tspec.resolve.program.rules import Rule
from tspec.syntax import nodes


def check(checked: Checked) -> Iterator[Found]:
    for rule in checked.rules:
        # `during` reads its `when` as the call begins; members of a group may differ on a claim.
        if rule.node.when is not None or rule.window.kind == "during" or rule.across:
            continue
        expect = rule.node.expect
        if expect is None or not isinstance(expect.claim, nodes.Implies):
            continue
        claim = expect.claim
        yield about(
            rule,
            "a condition of `expect` counts as met where `implies` does not apply",
            claim.span,
            f"write `when {_text(rule, claim.left)}`: then the rule is idle there, and a rule "
            "that is always idle is told",
            _fix(rule, expect, claim),
        )


def _text(rule: Rule, node: nodes.Expr) -> str:
    return rule.source.slice(node.span)


def _fix(rule: Rule, expect: nodes.Expect, claim: nodes.Implies) -> Fix | None:
    if "//" in rule.source.slice(expect.span):
        return None
    left = rule.source.slice(bare(rule.source, claim.left.span))
    right = rule.source.slice(bare(rule.source, claim.right.span))
    text = f"when {left}\n  expect {right}"
    return Fix("write it as `when`", (Edit(expect.span, text),), safe=False)


RULE = LintRule("TS0414", "implication-for-when", check)
