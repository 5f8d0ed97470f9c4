"""A rule in which some reads are taken as given: names of the context stand in for them.

For what no recording holds (`norm(change(x))`), or what is worked out from more than is compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tspec.logic.situations import Read
from tspec.resolve.program import rules
from tspec.resolve.program.rules import Expr, Rule
from tspec.resolve.program.text import text
from tspec.resolve.program.walk import rebuild_claim, transform


def name_of(expr: Expr) -> str:
    """The name in the context that stands in for an expression."""
    return f"given {text(expr)}"


def standing_in(rule: Rule, taken: Sequence[Read]) -> Rule:
    """The rule with these reads as names of the context."""
    new = {
        read.expr: rules.Ambient(read.expr.type, read.expr.span, name_of(read.expr))
        for read in taken
    }

    def change(expr: Expr) -> Expr:
        return transform(expr, new.get)

    when = None if rule.when is None else change(rule.when)
    return replace(rule, when=when, expect=rebuild_claim(rule.expect, change))
