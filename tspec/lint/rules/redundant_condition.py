"""TS0405: a part of a condition that follows from the rest of the rule."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.lint.checked import CheckedProgram
from tspec.lint.conditions import left_out
from tspec.lint.finding import LintViolation, SuggestedFix, about
from tspec.lint.operands import operands
from tspec.lint.rule import LintRule
from tspec.lint.rules.constant_comparison import compared
from tspec.lint.rules.duplicate_condition import duplicates
from tspec.resolve.program.queries import conditions
from tspec.resolve.program.rules import Expr, Or, Rule
from tspec.resolve.program.text import text


def check(checked: CheckedProgram) -> Iterator[LintViolation]:
    for rule in checked.rules:
        doubles = [double for double, _ in duplicates(checked.expressions(rule))]
        for note in checked.proofs.notes(rule, "dropped"):
            part = _part(checked.written(rule), note.subject)
            if part is None or part in doubles or any(truth for _, truth in compared(part)):
                continue
            edits = left_out(rule, part.span)
            fix = SuggestedFix("leave it out", edits) if edits else None
            yield about(rule, _message(rule, part, checked), part.span, "leave it out", fix)


def _part(written: tuple[Expr, ...], shown: str) -> Expr | None:
    """The last part of the rule's conditions with the text of the dropped part.

    A part of an inlined `let` is not written in the rule, and other rules may need it.
    """
    found = [part for part in written if text(part) == shown]
    return found[-1] if found else None


def _message(rule: Rule, part: Expr, checked: CheckedProgram) -> str:
    shown = rule.source.slice(part.span)
    if any(isinstance(whole, Or) and part in whole.items for whole in checked.written(rule)):
        return f"`{shown}` adds nothing to what it is joined with by `or`"
    own = list(operands(part))
    others = [leaf for condition in conditions(rule) for leaf in operands(condition)]
    if all(others.count(leaf) == own.count(leaf) for leaf in own):
        return f"`{shown}` is true in every situation"
    return f"`{shown}` follows from the rest of the rule"


RULE = LintRule("TS0405", "redundant-condition", check)
