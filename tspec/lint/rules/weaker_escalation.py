"""TS0442: an action that is never taken, because a stronger one is due by then."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation, about
from tspec.lint.rule import LintRule


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for rule in checked.rules:
        spans = rule.spans.responses
        if len(spans) != len(rule.responses) or rule.draft:
            continue  # The actions of this rule are set elsewhere, or it is a draft.
        for place, response in enumerate(rule.responses):
            others = rule.responses[:place] + rule.responses[place + 1 :]
            over = next((each for each in others if each.covers(response)), None)
            if over is None or (over == response and place == 0):
                continue
            message = (
                f"`{response.action}` is never taken: whenever it is due, `{over.action}` is too"
            )
            hint = "a list goes from the weaker action to the stronger, which needs more failures"
            yield about(rule, message, spans[place], hint)


RULE = LintRule("TS0442", "weaker-escalation", check)
