"""From an expression to columns of a query: one function for each kind of expression of `resolve/program/expressions.py`.

`want` is the feature that is read of a tensor: it goes down to the table of samples, so that no
tensor is ever a value in a query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tspec.check.columnar import calls, collections, folds, lookback, operators, state, tensors
from tspec.check.columnar.reads import KNOWN
from tspec.check.columnar.scope import Element, Frame, QueryScope
from tspec.check.columnar.shapes import (
    ABSENT,
    BOOL,
    FLOAT,
    INT,
    NO_REASON,
    NOT_RECORDED,
    STRING,
    Cell,
    ListShape,
    SingleShape,
    call_of,
    missing,
)
from tspec.check.columnar.sql import integer, number, text
from tspec.resolve.program import rules, types
from tspec.resolve.program.queries import reads_entities_only
from tspec.resolve.program.rules import Expr
from tspec.resolve.program.types import holds_tensors
from tspec.resolve.program.walk import expressions
from tspec.source import NOWHERE
from tspec.values import STEP_OF_RUN

_HEAVY = (rules.Subjects, rules.Calls, rules.LastCall, rules.Restrict)
_PATHS = (
    rules.Field, rules.Index, rules.Old, rules.Previous, rules.First, rules.Variable, rules.Ambient,
    rules.Cast, rules.Difference,
)  # fmt: skip


def read(scope: QueryScope, expr: Expr, frame: Frame, want: str | None = None) -> Cell:
    """The columns of an expression's value and of why it is missing."""
    asked = (expr, frame, want)
    if asked not in scope.memo:
        if scope.outer is not None and _is_of_window(expr, scope):
            scope.memo[asked] = _from_outer(scope, read(scope.outer, expr, frame, want))
        else:
            scope.memo[asked] = _MEANING[type(expr)](scope, expr, frame, want)
    return scope.memo[asked]


def condition(scope: QueryScope, expr: Expr, frame: Frame) -> Cell:
    """An expression where a bool is expected."""
    return operators.truth(scope.relation, read(scope, expr, frame))


def _is_of_window(expr: Expr, scope: QueryScope) -> bool:
    """True if the expression is expensive and has one value for all choices of subjects. It is then
    read once for each window.
    """
    found = list(expressions(expr))
    return any(isinstance(each, _HEAVY) for each in found) and not any(
        isinstance(each, rules.Variable | rules.Previous | rules.Transpose | rules.First)
        or (isinstance(each, rules.Fold) and each.scope != "list")
        for each in found
    )


def _from_outer(scope: QueryScope, cell: Cell) -> Cell:
    """A cell of the windows, beside each choice of subjects."""
    outer = scope.outer
    assert outer is not None
    computed = [each for each in (cell.value, cell.why) if outer.relation.has_computed(each)]
    if not computed:
        return cell
    table = outer.relation.table(*computed)
    columns = (f"o.{each}" if each in computed else each for each in (cell.value, cell.why))
    value, why = scope.relation.joined(f"LEFT JOIN {table} o ON o.w = r.w", tuple(columns))
    return Cell(value, why, cell.shape)


# --- names --------------------------------------------------------------------------------------


def _constant(scope: QueryScope, expr: rules.Constant, frame: Frame, want: str | None) -> Cell:
    value = expr.value
    if isinstance(value, bool):
        return Cell(str(value).lower(), NO_REASON, BOOL)
    if isinstance(value, int):
        return Cell(integer(value), NO_REASON, INT)
    if isinstance(value, float):
        return Cell(number(value), NO_REASON, FLOAT)
    return Cell(text(value), NO_REASON, STRING)


def _ambient(scope: QueryScope, expr: rules.Ambient, frame: Frame, want: str | None) -> Cell:
    if expr.name == "rank":
        return Cell("rank", NO_REASON, INT)
    if expr.name in ("step", "epoch", "microbatch", "phase"):
        shape = STRING if expr.name == "phase" else INT
        why = NO_REASON
        if frame.when == "e":
            why = scope.relation.column("CASE WHEN e_at IS NULL THEN 2::TINYINT END")
        return Cell(frame.column(expr.name), why, shape)
    if expr.name == STEP_OF_RUN:
        return _step_of_run(scope, frame)
    context = Cell("hash('context ')", NO_REASON, SingleShape("subject", "context"))
    return state.of_subject(scope, context, expr.name, Frame(frame.when), want)


def _step_of_run(scope: QueryScope, frame: Frame) -> Cell:
    """The equivalent of `tspec.values.step_of_run`, with the first step that opened on the rank."""
    firsts = scope.facts.table(
        "SELECT rank, arg_min(number, g) AS first FROM boundaries WHERE span = 'step' GROUP BY rank"
    )
    [first] = scope.relation.joined(f"LEFT JOIN {firsts} s ON s.rank = r.rank", ("s.first",))
    step = _ambient(scope, rules.Ambient(types.INT, NOWHERE, "step"), frame, None)
    number = f"greatest(0, coalesce({step.value} - {first} + 1, 0))"
    return scope.relation.cell(number, step.why, INT)


def _variable(scope: QueryScope, expr: rules.Variable, frame: Frame, want: str | None) -> Cell:
    bound = scope.variables[expr.name]
    if isinstance(bound, Element):
        held = read(scope, bound.collection, Frame("l"), want)
        return collections.at_place(scope.relation, held, bound.place)
    return bound


def _window_call(scope: QueryScope, expr: rules.WindowCall, frame: Frame, want: str | None) -> Cell:
    return Cell("c", NO_REASON, calls.of_window(scope.window))


def _last_call(scope: QueryScope, expr: rules.LastCall, frame: Frame, want: str | None) -> Cell:
    if frame.when == "s" and not scope.instant:
        return missing(NOT_RECORDED, call_of(expr.event.events))
    filters = calls.filters(scope, expr.event, frame, read)
    return calls.last(scope, expr.event, filters, frame)


def _calls(scope: QueryScope, expr: rules.Calls, frame: Frame, want: str | None) -> Cell:
    if frame.when == "s" and not scope.instant:
        return Cell(
            "[]::STRUCT(v BIGINT, m TINYINT)[]",
            NO_REASON,
            ListShape(call_of(expr.event.events)),
        )
    filters = calls.filters(scope, expr.event, frame, read)
    return calls.in_window(scope, ((expr.event, filters),), frame)


# --- subjects and their fields ------------------------------------------------------------------


def _subjects(scope: QueryScope, expr: rules.Subjects, frame: Frame, want: str | None) -> Cell:
    found = collections.subjects(scope, expr.kind, frame)
    return _restricted(scope, found, expr.filters, frame)


def _restrict(scope: QueryScope, expr: rules.Restrict, frame: Frame, want: str | None) -> Cell:
    return _restricted(scope, read(scope, expr.collection, frame, want), expr.filters, frame)


def _restricted(
    scope: QueryScope, found: Cell, filters: tuple[rules.Filter, ...], frame: Frame
) -> Cell:
    if not filters:
        return found
    values = tuple((each.field, read(scope, each.value, frame)) for each in filters)
    return collections.restricted(scope, found, values, frame)


def _field(scope: QueryScope, expr: rules.Field, frame: Frame, want: str | None) -> Cell:
    base = read(scope, expr.base, frame)
    return collections.field(scope, base, expr, frame, want)


def _list_display(
    scope: QueryScope, expr: rules.ListDisplay, frame: Frame, want: str | None
) -> Cell:
    cells = [read(scope, item, frame, want) for item in expr.items]
    return collections.display(scope.relation, cells)


def _index(scope: QueryScope, expr: rules.Index, frame: Frame, want: str | None) -> Cell:
    base, index = read(scope, expr.base, frame, want), read(scope, expr.index, frame)
    return collections.index(scope, base, index, want)


def _present(scope: QueryScope, expr: rules.Present, frame: Frame, want: str | None) -> Cell:
    cell = read(scope, expr.value, frame, KNOWN if isinstance(expr.value, _PATHS) else None)
    return scope.relation.cell(
        f"CASE WHEN {cell.why} IS NULL THEN true WHEN {cell.why} = {ABSENT} THEN false END",
        f"CASE WHEN {cell.why} <> {ABSENT} THEN {cell.why} END",
        BOOL,
    )


# --- tensors ------------------------------------------------------------------------------------


def _feature(scope: QueryScope, expr: rules.Feature, frame: Frame, want: str | None) -> Cell:
    if expr.per is not None or expr.dim is not None:
        return tensors.unread(scope.relation, read(scope, expr.tensor, frame, KNOWN))
    return tensors.feature(
        scope.relation, expr.name, lambda feature: read(scope, expr.tensor, frame, feature)
    )


def _cast(scope: QueryScope, expr: rules.Cast, frame: Frame, want: str | None) -> Cell:
    return tensors.unread(scope.relation, read(scope, expr.tensor, frame, KNOWN))


def _difference(scope: QueryScope, expr: rules.Difference, frame: Frame, want: str | None) -> Cell:
    left, right = (read(scope, side, frame, KNOWN) for side in (expr.left, expr.right))
    return tensors.unread(scope.relation, left, right)


# --- folds and look-backs -----------------------------------------------------------------------


def _fold(scope: QueryScope, expr: rules.Fold, frame: Frame, want: str | None) -> Cell:
    if expr.scope == "list":
        counted = expr.name == "count" and holds_tensors(expr.value.type)
        value = read(scope, expr.value, frame, KNOWN if counted else None)
        return folds.of_list(scope.relation, expr.name, value)
    value = read(scope, expr.value, frame)
    if expr.scope == "group":
        return lookback.members(scope, expr.name, value)
    assert expr.over is not None
    return lookback.over(scope, expr.name, value, expr.over)


def _previous(scope: QueryScope, expr: rules.Previous, frame: Frame, want: str | None) -> Cell:
    return lookback.previous(scope, read(scope, expr.value, frame, want))


def _first(scope: QueryScope, expr: rules.First, frame: Frame, want: str | None) -> Cell:
    if reads_entities_only(expr.value):
        return read(scope, expr.value, Frame(frame.when, True), want)
    return lookback.first(scope, read(scope, expr.value, frame, want), expr.value)


def _transpose(scope: QueryScope, expr: rules.Transpose, frame: Frame, want: str | None) -> Cell:
    return lookback.transposed(scope, read(scope, expr.value, frame, want))


# --- operators ----------------------------------------------------------------------------------


def _function(scope: QueryScope, expr: rules.Function, frame: Frame, want: str | None) -> Cell:
    cells = [read(scope, argument, frame) for argument in expr.arguments]
    if expr.name == "isinstance":
        value, wanted = cells
        if isinstance(value.shape, SingleShape) and value.shape.name in ("subject", "call"):
            value = collections.field_of(scope, value, "class", frame, None)
        return operators.is_instance(scope.relation, value, wanted)
    return operators.function(scope.facts, scope.relation, expr.name, cells)


_Meaning = Callable[[QueryScope, Any, Frame, "str | None"], Cell]
"""Reads a kind of expression: scope, expression, frame and wanted feature -> cell."""


def _of_operands(apply: Callable[..., Cell], *names: str) -> _Meaning:
    """The meaning of an operator. `names` are the fields that hold its operands."""

    def meaning(scope: QueryScope, expr: Any, frame: Frame, want: str | None) -> Cell:
        operands = [read(scope, getattr(expr, name), frame) for name in names]
        return apply(scope.relation, *operands)

    return meaning


def _compare(scope: QueryScope, expr: rules.Compare, frame: Frame, want: str | None) -> Cell:
    left, right = read(scope, expr.left, frame), read(scope, expr.right, frame)
    return operators.compare(scope.relation, expr.op, left, right)


def _same_object(scope: QueryScope, expr: rules.SameObject, frame: Frame, want: str | None) -> Cell:
    left, right = read(scope, expr.left, frame), read(scope, expr.right, frame)
    if left.shape == right.shape == tensors.TENSOR:
        left = read(scope, expr.left, frame, "object")
        right = read(scope, expr.right, frame, "object")
    return operators.compare(scope.relation, "==", left, right)


def _arithmetic(scope: QueryScope, expr: rules.Arithmetic, frame: Frame, want: str | None) -> Cell:
    left, right = read(scope, expr.left, frame), read(scope, expr.right, frame)
    return operators.arithmetic(scope.relation, expr.op, left, right)


def _junction(
    scope: QueryScope, expr: rules.And | rules.Or, frame: Frame, want: str | None
) -> Cell:
    items = [condition(scope, item, frame) for item in expr.items]
    word = "AND" if isinstance(expr, rules.And) else "OR"
    return operators.junction(scope.relation, word, items)


def _implies(scope: QueryScope, expr: rules.Implies, frame: Frame, want: str | None) -> Cell:
    left = operators.negation(scope.relation, condition(scope, expr.left, frame))
    return operators.junction(scope.relation, "OR", [left, condition(scope, expr.right, frame)])


def _not(scope: QueryScope, expr: rules.Not, frame: Frame, want: str | None) -> Cell:
    return operators.negation(scope.relation, condition(scope, expr.value, frame))


_MEANING: Mapping[type, _Meaning] = {
    rules.Constant: _constant,
    rules.ListDisplay: _list_display,
    rules.Ambient: _ambient,
    rules.Variable: _variable,
    rules.WindowCall: _window_call,
    rules.LastCall: _last_call,
    rules.Subjects: _subjects,
    rules.Restrict: _restrict,
    rules.Calls: _calls,
    rules.Field: _field,
    rules.Feature: _feature,
    rules.Cast: _cast,
    rules.Difference: _difference,
    rules.Index: _index,
    rules.Old: lambda s, e, f, want: read(s, e.value, Frame("s", f.first), want),
    rules.Previous: _previous,
    rules.First: _first,
    rules.Present: _present,
    rules.Fold: _fold,
    rules.Transpose: _transpose,
    rules.Compare: _compare,
    rules.Member: _of_operands(operators.member, "item", "collection"),
    rules.SameObject: _same_object,
    rules.Arithmetic: _arithmetic,
    rules.Negate: _of_operands(operators.negate, "value"),
    rules.Not: _not,
    rules.And: _junction,
    rules.Or: _junction,
    rules.Implies: _implies,
    rules.Function: _function,
}
