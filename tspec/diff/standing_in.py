"""A rule in which some reads are taken as given: names of the context stand in for them.

For what no recording holds (`norm(change(x))`), or what is worked out from more than is compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from tspec.logic.situations import Read
from tspec.resolve import rules
from tspec.resolve.rules import Expr, Rule
from tspec.resolve.text import text

T = TypeVar("T")


def name_of(expr: Expr) -> str:
    """The name in the context that stands in for an expression."""
    return f"given {text(expr)}"


def standing_in(rule: Rule, taken: Sequence[Read]) -> Rule:
    """The rule with these reads as names of the context."""
    new = {
        read.expr: rules.Ambient(read.expr.type, read.expr.span, name_of(read.expr))
        for read in taken
    }
    return replace(
        rule,
        when=_replaced(rule.when, new),
        expect=_replaced(rule.expect, new),
    )


def _replaced(value: T, new: Mapping[Expr, Expr]) -> T:
    if isinstance(value, tuple):
        return tuple(_replaced(item, new) for item in value)  # type: ignore[return-value]
    if not is_dataclass(value) or isinstance(value, type):
        return value
    if isinstance(value, rules.Expr) and value in new:
        found: Any = new[value]
        return found  # type: ignore[no-any-return]
    changed = {
        each.name: _replaced(getattr(value, each.name), new)
        for each in fields(value)
        if each.name not in ("type", "span")
    }
    return replace(value, **changed)
