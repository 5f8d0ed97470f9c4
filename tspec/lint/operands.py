"""The reads of conditions, used to decide which rules are worth a question to z3."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from tspec.builtin.functions import FUNCTIONS
from tspec.resolve.program import rules
from tspec.resolve.program.queries import conditions, conjuncts
from tspec.resolve.program.rules import Expr, Rule
from tspec.resolve.program.walk import children

_OPERATORS = (
    rules.ListDisplay, rules.Compare, rules.Member, rules.SameObject, rules.Arithmetic,
    rules.Negate, rules.Not, rules.And, rules.Or, rules.Implies,
)  # fmt: skip
_LOOKED_INTO = frozenset(
    {"isinstance", *(row.name for row in FUNCTIONS.values() if row.bounds_a_number)}
)
"""Functions whose value z3 can relate to their first argument."""

_FREE = (rules.Constant, rules.Variable, rules.WindowCall)


def operands(expr: Expr) -> Iterator[Expr]:
    """The largest parts below operators: reads, folds, features and guards."""
    if isinstance(expr, _FREE):
        return
    if isinstance(expr, rules.Function) and expr.name in _LOOKED_INTO:
        yield from operands(expr.arguments[0])
        return
    if not isinstance(expr, _OPERATORS):
        yield expr
        return
    for child in children(expr):
        if isinstance(child, Expr):
            yield from operands(child)


def entangled(rule: Rule) -> Rule:
    """The rule without the parts of `when` that share no read with the rest.

    Nothing follows from such a part, and it follows from nothing: a finding about the rule without
    it is one about the rule. Rules that differ only in such parts are one question.
    """
    parts = conjuncts(rule.when)
    found = Counter(leaf for condition in conditions(rule) for leaf in operands(condition))
    kept = tuple(
        part
        for part in parts
        if not (own := list(operands(part))) or any(found[o] > 1 for o in own)
    )
    if len(kept) == len(parts):
        return rule
    when = rule.when
    if isinstance(when, rules.And) and len(kept) > 1:
        return replace(rule, when=replace(when, items=kept))
    return replace(rule, when=kept[0] if kept else None)


def something_may_follow(rule: Rule) -> bool:
    """True if a part of the rule may follow from the rest, or be constant.

    That is impossible if no value is read twice: then every part can be false independently, except
    for bounds, which `bounds.truth` knows. A guard and the guarded read do not count as two, since
    the verdict would be unknown without the guard.
    """
    counted: Counter[Expr] = Counter()
    for condition in conditions(rule):
        found = list(operands(condition))
        if not found:
            return True  # Constants alone.
        counted.update(found)
    return bool(counted) and max(counted.values()) > 1
