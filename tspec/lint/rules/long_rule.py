"""TS0454: a rule that does not fit the eye."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import LintViolation, about
from tspec.lint.rule import LintRule
from tspec.resolve.program.rules import Rule

MOST_LINES = 10
"""The number of lines between the braces, without comments and a draft's origin."""


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    """The rules that are too long. Drafts are as long as what was seen."""
    for rule in checked.rules:
        lines = _lines(rule)
        if lines > MOST_LINES and not rule.draft:
            message = f"`{rule.name}` has {lines} lines, which is more than {MOST_LINES}"
            hint = "name a part of it with `let`, or make it two rules"
            yield about(rule, message, rule.span, hint)


def _lines(rule: Rule) -> int:
    texts = (rule.source.slice(span) for span in rule.spans.clauses)
    return sum(
        bool(line.strip()) and not line.strip().startswith("//")
        for text in texts
        for line in text.splitlines()
    )


RULE = LintRule("TS0454", "long-rule", check)
