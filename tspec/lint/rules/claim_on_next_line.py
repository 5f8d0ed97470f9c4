"""TS0425: a `before` on a line of its own below `expect`, where it is a part of the claim."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import CheckedProgram
from tspec.lint.finding import Edit, LintViolation, SuggestedFix, about
from tspec.lint.rule import LintRule
from tspec.resolve.program.rules import Ordered
from tspec.source import Span
from tspec.syntax.format import WIDTH

INDENT = 2


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for rule in checked.rules:
        expect = rule.spans.expect
        if expect is None or not isinstance(rule.expect, Ordered):
            continue
        text = rule.source.slice(expect)
        joined = " ".join(text.split())
        if "\n" not in text or "//" in text or len(joined) + INDENT > WIDTH:
            continue  # The formatter breaks a claim that is too long for a line.
        word = expect.start + text.index("before", text.index("\n"))
        message = "this reads like a window, and is the claim that one call comes before another"
        hint = "write it on one line, or put the window above `expect`"
        fix = SuggestedFix("write it on one line", (Edit(expect, joined),))
        yield about(rule, message, Span(word, word + len("before")), hint, fix)


RULE = LintRule("TS0425", "claim-on-next-line", check)
