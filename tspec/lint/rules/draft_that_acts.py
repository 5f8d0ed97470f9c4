"""TS0441: a draft that names an action it does not take."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.builtin.actions import ACTIONS
from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation, about
from tspec.lint.rule import LintRule


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for rule in checked.rules:
        if not rule.draft:
            continue
        for span in rule.spans.actions:
            action = rule.source.slice(span)
            if ACTIONS[action].acts:
                message = f"a draft only warns: it does not {action}"
                hint = "accept the rule by deleting `draft`, or write `warn`"
                yield about(rule, message, span, hint)
                break


RULE = LintRule("TS0441", "draft-that-acts", check)
