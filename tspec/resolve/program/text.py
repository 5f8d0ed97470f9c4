"""An expression after resolution, written as one line of the language again."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any

from tspec.builtin.features import DOTTED
from tspec.builtin.functions import FUNCTIONS
from tspec.resolve.program import rules
from tspec.resolve.program.rules import Expr

_LOOSENESS: Mapping[type, int] = {
    rules.Implies: 0, rules.Or: 1, rules.And: 2, rules.Not: 3, rules.Compare: 4, rules.Member: 4,
    rules.SameObject: 4, rules.Arithmetic: 5, rules.Negate: 7,
}  # fmt: skip


def text(expr: Expr) -> str:
    """An expression as one line of the language."""
    if isinstance(expr, rules.Constant):
        return _constant(expr)
    return _TEXTS[type(expr)](expr)


def _constant(expr: rules.Constant) -> str:
    if isinstance(expr.value, str) and str(expr.type) == "string":
        return '"' + expr.value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(expr.value, bool):
        return "true" if expr.value else "false"
    return f"{expr.value:.9g}" if isinstance(expr.value, float) else str(expr.value)


def _level(expr: Expr) -> int:
    if finite_number(expr) is not None:
        return 9
    if isinstance(expr, rules.Arithmetic):
        return 5 if expr.op in "+-" else 6
    return _LOOSENESS.get(type(expr), 9)


def _inside(expr: Expr, level: int) -> str:
    """In parentheses where the expression binds more loosely than its place."""
    return text(expr) if _level(expr) >= level else f"({text(expr)})"


def _infix(op: str, left: Expr, right: Expr, level: int) -> str:
    return f"{_inside(left, level)} {op} {_inside(right, level + 1)}"


def _filters(filters: tuple[rules.Filter, ...]) -> str:
    return ", ".join(f"{each.field}: {text(each.value)}" for each in filters)


def pattern_text(event: rules.EventPattern) -> str:
    """An event pattern as the language writes it."""
    names = ", ".join(event.events)
    return f"{names}({_filters(event.filters)})" if event.filters else names


def claim_text(claim: rules.Claim) -> str:
    """A claim as the language writes it after `expect`."""
    match claim:
        case rules.Holds(condition):
            return text(condition)
        case rules.Contains(event):
            return f"contains {pattern_text(event)}"
        case rules.Ordered(events, edge):
            return f" {edge} ".join(map(pattern_text, events))
        case rules.OnlyDuring(subject, change, events):
            what = f"changed({text(subject)})" if change else text(subject)
            return f"{what} only during {' or '.join(map(pattern_text, events))}"


def _calls(expr: rules.Calls) -> str:
    inside = [*expr.event.events, *([_filters(expr.event.filters)] if expr.event.filters else [])]
    return f"calls({', '.join(inside)})"


def _subjects(expr: rules.Subjects) -> str:
    plural = {"batch": "batches", "entity": "entities"}.get(expr.kind, f"{expr.kind}s")
    return f"{plural}({_filters(expr.filters)})" if expr.filters else plural


def _feature(expr: rules.Feature) -> str:
    if expr.name in DOTTED:
        return f"{_inside(expr.tensor, 9)}.{expr.name}"
    options = f", per: {expr.per}" if expr.per is not None else ""
    options += f", dim: {expr.dim}" if expr.dim is not None else ""
    return f"{expr.name}({text(expr.tensor)}{options})"


def _fold(expr: rules.Fold) -> str:
    if expr.over is None:
        return f"{expr.name}({text(expr.value)})"
    ending = "" if expr.over.count == 1 else "es" if expr.over.unit == "microbatch" else "s"
    return f"{expr.name}({text(expr.value)}, over: {expr.over.count} {expr.over.unit}{ending})"


def _function(expr: rules.Function) -> str:
    shown = [text(argument) for argument in expr.arguments]
    names = FUNCTIONS[expr.name].named
    for place, name in enumerate(names, len(shown) - len(names)):
        shown[place] = f"{name}: {shown[place]}"
    return f"{expr.name}({', '.join(shown)})"


_Wrapped = rules.Old | rules.Previous | rules.First | rules.Present | rules.Transpose


def _joined(word: str) -> Callable[[rules.And | rules.Or], str]:
    def joined(expr: rules.And | rules.Or) -> str:
        return f" {word} ".join(_inside(item, _level(expr) + 1) for item in expr.items)

    return joined


def _named(word: str) -> Callable[[_Wrapped], str]:
    return lambda expr: f"{word}({text(expr.value)})"


def finite_number(expr: Expr) -> Expr | None:
    """The x of `finite(x)` of a number, which is resolved to a comparison with the largest one."""
    match expr:
        case rules.Compare(
            op="<=",
            left=rules.Function(name="abs", arguments=(number,)),
            right=rules.Constant(value=sys.float_info.max),
        ):
            return number
    return None


def _operator(expr: rules.Compare | rules.Arithmetic) -> str:
    number = finite_number(expr)
    if number is not None:
        return f"finite({text(number)})"
    return _infix(expr.op, expr.left, expr.right, _level(expr))


def _difference(expr: rules.Difference) -> str:
    left = text(expr.left)
    if isinstance(expr.right, rules.Old) and text(expr.right.value) == left:
        return f"change({left})"
    return f"difference({left}, {text(expr.right)})"


_TEXTS: Mapping[type, Callable[[Any], str]] = {
    rules.ListDisplay: lambda e: "[" + ", ".join(map(text, e.items)) + "]",
    rules.Ambient: lambda e: e.name,
    rules.Variable: lambda e: e.name,
    rules.WindowCall: lambda e: str(e.type).removeprefix("call of "),
    rules.LastCall: lambda e: pattern_text(e.event),
    rules.Subjects: _subjects,
    rules.Restrict: lambda e: f"{_inside(e.collection, 9)}({_filters(e.filters)})",
    rules.Calls: _calls,
    rules.Field: lambda e: f"{_inside(e.base, 9)}.{e.name}",
    rules.Feature: _feature,
    rules.Cast: lambda e: f"cast({text(e.tensor)}, {text(e.dtype)})",
    rules.Difference: _difference,
    rules.Index: lambda e: f"{_inside(e.base, 9)}[{text(e.index)}]",
    rules.Old: _named("old"),
    rules.Previous: _named("previous"),
    rules.First: _named("first"),
    rules.Present: _named("present"),
    rules.Fold: _fold,
    rules.Transpose: _named("transpose"),
    rules.Compare: _operator,
    rules.Member: lambda e: _infix("in", e.item, e.collection, 4),
    rules.SameObject: lambda e: _infix("is", e.left, e.right, 4),
    rules.Arithmetic: _operator,
    rules.Negate: lambda e: f"-{_inside(e.value, 7)}",
    rules.Not: lambda e: f"not {_inside(e.value, 3)}",
    rules.And: _joined("and"),
    rules.Or: _joined("or"),
    rules.Implies: lambda e: _infix("implies", e.left, e.right, 0),
    rules.Function: _function,
}
