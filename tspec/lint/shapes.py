"""Shapes: rules compared without their variables and thresholds, and without z3.

Most similar rules differ in a threshold only. Those are ordered here by their comparisons; z3 is
asked about the others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from tspec.resolve.program import rules
from tspec.resolve.program.rules import Compare, Constant, Expr, Fold, Holds, Rule

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class RuleShape:
    """A rule's text without names of variables and without numbers, and the numbers in their order."""

    key: Key
    numbers: tuple[float, ...]


def shape_of(rule: Rule) -> RuleShape:
    """The shape of a rule's meaning; its name, actions and documentation take no part."""
    reading = _ShapeReader(rule)
    key = reading.rule(rule)
    return RuleShape(key, tuple(reading.numbers))


def kind_of(rule: Rule) -> Key:
    """The shape without texts, classes and events too: the common form of rules that a program
    wrote.
    """
    return _ShapeReader(rule, coarse=True).rule(rule)


class _ShapeReader:
    """One walk over a rule, or over a part of it, that gathers its numbers."""

    def __init__(self, rule: Rule | None = None, coarse: bool = False) -> None:
        subjects = rule.subjects if rule is not None else ()
        self._places = {clause.variable: place for place, clause in enumerate(subjects)}
        self._coarse = coarse
        self.numbers: list[float] = []

    def rule(self, rule: Rule) -> Key:
        """The key of a whole rule."""
        parts = (rule.subjects, rule.across, rule.window, rule.when, rule.expect)
        return tuple(map(self.key, parts))

    def key(self, value: Any) -> Any:
        """The key of a part."""
        if isinstance(value, tuple):
            return tuple(map(self.key, value))
        if isinstance(value, rules.Variable):
            return ("variable", self._places.get(value.name, value.name))
        if isinstance(value, Constant) and not isinstance(value.value, bool | str):
            self.numbers.append(value.value)
            return ("number", str(value.type))
        if self._coarse and isinstance(value, Constant):
            return ("constant", str(value.type))
        if self._coarse and isinstance(value, rules.EventPattern):
            return ("events", len(value.events), self.key(value.filters))
        if not is_dataclass(value) or isinstance(value, type):
            return value
        return (
            type(value).__name__,
            *(self.key(getattr(value, name)) for name in _compared_fields(value)),
        )


def _compared_fields(value: Any) -> Iterator[str]:
    for each in fields(value):
        if each.compare and each.name not in ("variable", "type"):
            yield each.name


def stricter(strong: Rule, weak: Rule) -> bool:
    """True if `strong` is violated wherever `weak` is, by the thresholds of these rules of one
    shape alone.
    """
    if strong.across and _when(strong) != _when(weak):
        return False
    due = _follows(weak.when, strong.when)
    if isinstance(strong.expect, Holds) and isinstance(weak.expect, Holds):
        return due and _follows(strong.expect.condition, weak.expect.condition)
    return due


def _when(rule: Rule) -> Key:
    """The shape of a rule's `when`, with its numbers."""
    reading = _ShapeReader(rule)
    return (reading.key(rule.when), *reading.numbers)


def _follows(one: Expr | None, other: Expr | None) -> bool:
    """True if `one` implies `other`, by structure alone. Both have the same shape."""
    if one is None or other is None:
        return one is other
    if isinstance(one, rules.And | rules.Or) and isinstance(other, rules.And | rules.Or):
        return all(map(_follows, one.items, other.items))
    if isinstance(one, rules.Not) and isinstance(other, rules.Not):
        return _follows(other.value, one.value)
    if isinstance(one, rules.Implies) and isinstance(other, rules.Implies):
        return _follows(other.left, one.left) and _follows(one.right, other.right)
    if isinstance(one, Fold) and isinstance(other, Fold) and one.name in ("any", "all"):
        return _follows(one.value, other.value)
    if isinstance(one, Compare) and isinstance(other, Compare):
        return _numbers_equal(one, other) or _threshold(one, other)
    return _numbers_equal(one, other)


def _threshold(one: Compare, other: Compare) -> bool:
    """A comparison with a lower or higher number, which is true wherever the first one is."""
    if isinstance(one.right, Constant) and isinstance(other.right, Constant):
        if not _numbers_equal(one.left, other.left):
            return False
        first, second, op = one.right.value, other.right.value, str(one.op)
    elif isinstance(one.left, Constant) and isinstance(other.left, Constant):
        if not _numbers_equal(one.right, other.right):
            return False
        first, second, op = one.left.value, other.left.value, _TURNED.get(one.op, one.op)
    else:
        return False
    if isinstance(first, str | bool) or isinstance(second, str | bool):
        return False
    return (op in ("<", "<=") and first <= second) or (op in (">", ">=") and first >= second)


_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _numbers_equal(one: Expr, other: Expr) -> bool:
    """True if two expressions of one shape have the same numbers."""
    first, second = _ShapeReader(), _ShapeReader()
    first.key(one)
    second.key(other)
    return first.numbers == second.numbers
