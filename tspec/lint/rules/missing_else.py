"""TS0443: a rule that does not say what it does."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import Edit, LintViolation, SuggestedFix, about
from tspec.lint.rule import LintRule
from tspec.source import Span


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for rule in checked.rules:
        spans = rule.spans
        if rule.draft or spans.otherwise is not None or spans.expect is None:
            continue
        end = _end_of_line(rule.source.text, spans.expect.end)
        fix = SuggestedFix("add `else warn`", (Edit(Span(end, end), "\n  else warn"),))
        message = f"`{rule.name}` does not say what it does when it is violated"
        yield about(rule, message, rule.span, "it warns: write `else warn`", fix)


def _end_of_line(text: str, offset: int) -> int:
    """Behind a comment at the end of the line, but before a brace on it."""
    end = text.find("\n", offset)
    end = len(text) if end < 0 else end
    rest = text[offset:end]
    return end if rest.lstrip().startswith("//") else offset


RULE = LintRule("TS0443", "missing-else", check)
