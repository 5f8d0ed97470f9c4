"""A rule whose reads are partly replaced by placeholders, which are names of the context.

They replace values that no recording holds (`norm(change(x))`), and values that no small job can be
given.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tspec.logic.situations import SituationRead
from tspec.resolve.program import rules
from tspec.resolve.program.rules import Expr, Rule
from tspec.resolve.program.text import text
from tspec.resolve.program.walk import rebuild_claim, transform


def placeholder(expr: Expr) -> str:
    """The name in the context that replaces an expression."""
    return f"given {text(expr)}"


def with_placeholders(rule: Rule, taken: Sequence[SituationRead]) -> Rule:
    """The rule with placeholders for these reads."""
    new = {
        read.expr: rules.Ambient(read.expr.type, read.expr.span, placeholder(read.expr))
        for read in taken
    }

    def change(expr: Expr) -> Expr:
        return transform(expr, new.get)

    when = None if rule.when is None else change(rule.when)
    return replace(rule, when=when, expect=rebuild_claim(rule.expect, change))
