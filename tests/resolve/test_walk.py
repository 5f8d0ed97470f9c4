"""The walk over typed expressions, on every expression of every shipped rule."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import Any, get_args

import pytest

from tspec.resolve import load, load_text
from tspec.resolve.program import rules
from tspec.resolve.program.walk import (
    Part,
    children,
    expressions,
    operands,
    parts,
    rebuild,
    rebuild_rule,
    transform,
    walk,
)
from tspec.resources import shipped as shipped_folder

RARE = """edition 2026

module rare

use std.torch

invariant rare {
  for m in modules
  for p in m.parameters(dtype: float32)
  across dp
  each step
  when optimizer.step.optimizer is first(optimizers[0])
  expect -norm(change(p.data)) < 1
    and norm(cast(p.data, bfloat16)) > 0
    and same(transpose([p.name]))
}
"""
"""The kinds of nodes that shipped rules do not use."""


@cache
def shipped() -> tuple[rules.Rule, ...]:
    found = load([shipped_folder("stdlib"), shipped_folder("specs")])
    rare = load_text(RARE)
    assert found.program is not None
    assert rare.program is not None, [d.message for d in rare.diagnostics]
    return (*found.program.rules, *rare.program.rules)


@cache
def shipped_expressions() -> tuple[rules.Expr, ...]:
    return tuple(p for rule in shipped() for p in parts(rule) if isinstance(p, rules.Expr))


def by_reflection(value: Any) -> list[Part]:
    """Parts right below, found by looking at every field of a dataclass."""
    found: list[Part] = []
    for each in fields(value):
        item = getattr(value, each.name)
        for one in item if isinstance(item, tuple) else (item,):
            if isinstance(one, rules.Filter):
                found.append(one.value)
            elif isinstance(one, rules.Expr | rules.EventPattern):
                found.append(one)
    return found


def test_children_are_all_parts_that_the_fields_hold() -> None:
    seen = set()
    for rule in shipped():
        for part in parts(rule):
            seen.add(type(part))
            assert list(children(part)) == by_reflection(part)
    assert seen == {*get_args(rules.Expr), rules.EventPattern}


@pytest.mark.parametrize("kind", get_args(rules.Expr), ids=lambda kind: kind.__name__)
def test_every_kind_of_node_is_rebuilt_from_its_children(kind: type) -> None:
    for expr in shipped_expressions():
        if isinstance(expr, kind):
            seen: list[rules.Expr] = []
            assert rebuild(expr, lambda each, seen=seen: seen.append(each) or each) == expr
            assert seen == list(operands(expr))


def test_a_rule_is_rebuilt_with_each_variable_changed() -> None:
    def other(part: rules.Expr) -> rules.Expr | None:
        if not isinstance(part, rules.Variable):
            return None
        return rules.Variable(part.type, part.span, f"{part.name}_")

    named = 0
    for rule in shipped():
        changed = rebuild_rule(rule, lambda expr: transform(expr, other))
        before = [p.name for p in parts(rule) if isinstance(p, rules.Variable)]
        after = [p.name for p in parts(changed) if isinstance(p, rules.Variable)]
        assert after == [f"{name}_" for name in before]
        named += len(before)
    assert named > 100


def test_what_replaces_a_part_is_not_walked_into() -> None:
    number = next(e for e in shipped_expressions() if isinstance(e, rules.Constant))
    negated = rules.Negate(number.type, number.span, number)

    def negate(part: rules.Expr) -> rules.Expr | None:
        return negated if part == number else None

    assert transform(negated, negate) == rules.Negate(number.type, number.span, negated)


def test_expressions_leave_out_patterns_and_keep_the_values_of_their_filters() -> None:
    for rule in shipped():
        for part in parts(rule):
            whole = [each for each in walk(part) if not isinstance(each, rules.EventPattern)]
            assert list(expressions(part)) == whole
