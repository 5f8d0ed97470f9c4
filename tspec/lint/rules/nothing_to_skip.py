"""TS0440: `skip` in a rule about evaluation, where there is no update."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import Checked
from tspec.lint.finding import Found, about
from tspec.lint.rule import LintRule
from tspec.lint.steps import read
from tspec.resolve import types
from tspec.resolve.rules import And, Compare, Constant


def check(checked: Checked) -> Iterator[Found]:
    for rule in checked.rules:
        phase = read(rule, "phase")
        node = rule.node.otherwise
        if phase is None or rule.when is None or node is None:
            continue
        skips = [each for each in node.responses if each.action.text == "skip"]
        if not skips or checked.proofs.notes(rule, "never due"):
            continue
        value = Constant(phase.type, phase.span, "eval")
        trains = Compare(types.BOOL, phase.span, "!=", phase, value)
        if checked.proofs.never(rule, And(types.BOOL, rule.when.span, (rule.when, trains))):
            message = "in evaluation no update is made, so that there is nothing to skip"
            yield about(rule, message, skips[0].span, "write `warn`, `stop` or `raise`")


RULE = LintRule("TS0440", "nothing-to-skip", check)
