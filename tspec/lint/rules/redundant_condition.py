"""TS0405: a part of a condition that follows from the rest of the rule."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import Checked
from tspec.lint.conditions import expressions, left_out
from tspec.lint.finding import Fix, Found, about
from tspec.lint.rule import LintRule
from tspec.lint.rules.constant_comparison import compared
from tspec.lint.rules.duplicate_condition import duplicates
from tspec.resolve.rules import Expr, Rule
from tspec.resolve.text import text


def check(checked: Checked) -> Iterator[Found]:
    for rule in checked.rules:
        for note in checked.proofs.notes(rule, "dropped"):
            part = _part(rule, note.subject)
            if part is None or any(truth for _, truth in compared(part)):
                continue
            if any(part == double for double, _ in duplicates(rule)):
                continue
            shown = rule.source.slice(part.span)
            message = f"`{shown}` follows from the rest of the rule"
            edits = left_out(rule, part.span)
            fix = Fix("leave it out", edits) if edits else None
            yield about(rule, message, part.span, "leave it out", fix)


def _part(rule: Rule, shown: str) -> Expr | None:
    """The last part of the rule's conditions with that text, which is the one that was left out."""
    found = [part for part in expressions(rule) if text(part) == shown]
    return found[-1] if found else None


RULE = LintRule("TS0405", "redundant-condition", check)
