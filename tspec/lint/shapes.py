"""What rules have in common whatever their variables and thresholds are, compared without z3.

Of many rules most that are alike differ in a threshold. Those are ordered here by what their
comparisons say; z3 is left to those of which the text differs.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from tspec.resolve import rules
from tspec.resolve.rules import Compare, Constant, Expr, Fold, Holds, Rule

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Shape:
    """A rule's text without names of variables and without numbers, and the numbers in their order."""

    key: Key
    numbers: tuple[float, ...]


def shape_of(rule: Rule) -> Shape:
    """The shape of a rule's meaning; its name, actions and documentation take no part."""
    numbers: list[float] = []
    places = {clause.variable: place for place, clause in enumerate(rule.subjects)}
    key = tuple(
        _key(part, places, numbers)
        for part in (rule.subjects, rule.across, rule.window, rule.when, rule.expect)
    )
    return Shape(key, tuple(numbers))


def _key(value: Any, places: dict[str, int], numbers: list[float]) -> Any:
    if isinstance(value, tuple):
        return tuple(_key(each, places, numbers) for each in value)
    if isinstance(value, rules.Variable):
        return ("variable", places.get(value.name, value.name))
    if isinstance(value, Constant) and not isinstance(value.value, str | bool):
        numbers.append(value.value)
        return ("number", str(value.type))
    if not is_dataclass(value) or isinstance(value, type):
        return value
    return (
        type(value).__name__,
        *(
            _key(getattr(value, each.name), places, numbers)
            for each in fields(value)
            if each.compare and each.name not in ("variable", "type")
        ),
    )


def stricter(strong: Rule, weak: Rule) -> bool:
    """Of two rules of one shape: the one is violated wherever the other is, by their thresholds alone."""
    if strong.across and shape_of_when(strong) != shape_of_when(weak):
        return False
    due = _follows(weak.when, strong.when)
    if isinstance(strong.expect, Holds) and isinstance(weak.expect, Holds):
        return due and _follows(strong.expect.condition, weak.expect.condition)
    return due


def shape_of_when(rule: Rule) -> tuple[Any, ...]:
    """The shape of a rule's `when`, with its numbers."""
    numbers: list[float] = []
    places = {clause.variable: place for place, clause in enumerate(rule.subjects)}
    return (_key(rule.when, places, numbers), *numbers)


def _follows(one: Expr | None, other: Expr | None) -> bool:
    """The other one is true where the one is, and false only where it is; shapes are the same."""
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
    """Two expressions of one shape have the same numbers in them."""
    first: list[float] = []
    second: list[float] = []
    _key(one, {}, first)
    _key(other, {}, second)
    return first == second
