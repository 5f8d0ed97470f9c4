"""The value of an expression in a frame: one function for each kind of expression in `resolve/program/expressions.py`.

Page: "Values"; "Time" for expressions that move the frame.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tspec.builtin.kinds import PASSING
from tspec.check.interpret import calls, folds, lookback, values
from tspec.check.interpret.frames import EvaluationContext
from tspec.check.interpret.timeline import TimelineCall
from tspec.check.interpret.values import Datum
from tspec.resolve.program import rules
from tspec.resolve.program.rules import Expr
from tspec.resolve.program.types import SetOf
from tspec.trace.model import Missing, Ref
from tspec.values import STEP_OF_RUN, step_of_run

NOT_RECORDED = Missing.NOT_RECORDED
ABSENT = Missing.ABSENT


def evaluate(expr: Expr, frame: EvaluationContext) -> Datum:
    """The value of an expression in a frame, or why it has none."""
    return _MEANING[type(expr)](expr, frame)


def reader(frame: EvaluationContext) -> calls.Reading:
    """The function that reads expressions in a frame."""
    return lambda expr: evaluate(expr, frame)


# --- names --------------------------------------------------------------------------------------


def _ambient(expr: rules.Ambient, frame: EvaluationContext) -> Datum:
    if expr.name == "rank":
        return frame.local.line.rank
    moment = frame.moment
    if moment is None:
        return NOT_RECORDED
    of_context = moment.context.value(expr.name)
    if of_context is not None:
        return of_context
    if expr.name == STEP_OF_RUN:
        return step_of_run(moment.context.step, frame.local.line.first_step)
    return frame.local.line.value("context", "", expr.name, moment.seq)


def _last_call(expr: rules.LastCall, frame: EvaluationContext) -> Datum:
    if frame.moment is None or (frame.start and not frame.local.window.instant):
        return NOT_RECORDED
    found = calls.last_call(frame.local, calls.wanted(expr.event, reader(frame)))
    return NOT_RECORDED if found is None else found


def _subjects(expr: rules.Subjects, frame: EvaluationContext) -> Datum:
    moment = frame.moment
    if moment is None:
        return NOT_RECORDED
    line = frame.local.line
    if expr.kind in PASSING:
        names = passing(expr.kind, frame)
    else:
        names = [subject.name for subject in line.existing(expr.kind, moment.seq)]
    return _filtered(tuple(Ref(expr.kind, name) for name in names), expr.filters, frame)


def passing(kind: str, frame: EvaluationContext) -> list[str]:
    """The batches or messages that are first sampled in the window, at or before the moment."""
    line, moment = frame.local.line, frame.moment
    return [
        subject.name
        for subject in line.kinds.get(kind, [])
        if moment is not None
        and subject.first.seq <= moment.seq
        and frame.local.window.holds_sample(line, subject.first.seq)
    ]


def _restrict(expr: rules.Restrict, frame: EvaluationContext) -> Datum:
    return _filtered(evaluate(expr.collection, frame), expr.filters, frame)


def _filtered(
    collection: Datum, filters: Sequence[rules.Filter], frame: EvaluationContext
) -> Datum:
    """The elements of a collection whose fields are known to equal the values."""
    if not isinstance(collection, tuple | frozenset) or not filters:
        return collection
    moment = frame.moment
    if moment is None:
        return NOT_RECORDED
    wanted = calls.wanted_fields(filters, reader(frame))
    line = frame.local.line

    def matches(element: Datum) -> bool:
        return all(
            calls.filter_holds(name, field_of(element, name, frame), value, line, moment.seq)
            for name, value in wanted
        )

    return type(collection)(element for element in collection if matches(element))


def _calls(expr: rules.Calls, frame: EvaluationContext) -> Datum:
    if frame.moment is None:
        return NOT_RECORDED
    if frame.start and not frame.local.window.instant:
        return ()
    return tuple(calls.calls_in_window(frame.local, [calls.wanted(expr.event, reader(frame))]))


# --- fields and features ------------------------------------------------------------------------


def _field(expr: rules.Field, frame: EvaluationContext) -> Datum:
    base = evaluate(expr.base, frame)
    if not isinstance(base, tuple | frozenset):
        return field_of(base, expr.name, frame)
    fields = [field_of(element, expr.name, frame) for element in ordered(base, frame)]
    known = tuple(value for value in fields if value is not ABSENT)
    if not isinstance(expr.type, SetOf):
        return known
    why = next((value for value in known if isinstance(value, Missing)), None)
    if why is not None:
        return why
    return frozenset(item for value in known if isinstance(value, frozenset) for item in value)


def field_of(base: Datum, name: str, frame: EvaluationContext) -> Datum:
    """A field of one subject or call in a frame; of a list of them the list."""
    if isinstance(base, Missing):
        return base
    if isinstance(base, tuple):
        return tuple(field_of(element, name, frame) for element in base)
    if isinstance(base, TimelineCall):
        return _call_field(base, name, frame)
    if isinstance(base, str) and name in ("type", "index"):
        return _of_device(base, name)
    moment = frame.moment
    if not isinstance(base, Ref) or moment is None:
        return NOT_RECORDED
    read = frame.local.line.first_value if frame.first else frame.local.line.value
    return read(base.kind, base.name, name, moment.seq)


def _call_field(call: TimelineCall, name: str, frame: EvaluationContext) -> Datum:
    """Fields of the window's own call do not move; they are known unless the instant is before it."""
    window = frame.local.window
    if call is window.call and window.kind != "before":
        return call.field(name, call.begin.seq if call.end is None else call.end.seq)
    moment = frame.moment
    return NOT_RECORDED if moment is None else call.field(name, moment.seq)


def _of_device(device: str, name: str) -> Datum:
    kind, colon, index = device.partition(":")
    if name == "type":
        return kind
    return int(index) if colon and index.isdecimal() else ABSENT


def ordered(collection: Datum, frame: EvaluationContext) -> tuple[Datum, ...]:
    """The elements of a list or set in order."""
    if isinstance(collection, frozenset):
        subjects = frame.local.line.subjects

        def order(ref: Ref) -> int:
            found = subjects.get((ref.kind, ref.name))
            return len(subjects) if found is None else found.order

        return values.set_order(collection, order)
    return collection if isinstance(collection, tuple) else ()


def _feature(expr: rules.Feature, frame: EvaluationContext) -> Datum:
    tensor = evaluate(expr.tensor, frame)
    if expr.per is not None or expr.dim is not None:
        return tensor if isinstance(tensor, Missing) else NOT_RECORDED
    if isinstance(tensor, frozenset):
        tensor = ordered(tensor, frame)
    return folds.feature(expr.name, tensor)


def _cast(expr: rules.Cast, frame: EvaluationContext) -> Datum:
    tensor = evaluate(expr.tensor, frame)
    return tensor if isinstance(tensor, Missing) else NOT_RECORDED


def _difference(expr: rules.Difference, frame: EvaluationContext) -> Datum:
    sides = (evaluate(side, frame) for side in (expr.left, expr.right))
    return next((side for side in sides if isinstance(side, Missing)), NOT_RECORDED)


def _index(expr: rules.Index, frame: EvaluationContext) -> Datum:
    base, index = evaluate(expr.base, frame), evaluate(expr.index, frame)
    if isinstance(base, Missing):
        return base
    if isinstance(index, Missing):
        return index
    if isinstance(base, Mapping) and isinstance(index, str):
        return base.get(index, ABSENT)
    if isinstance(base, tuple) and isinstance(index, int) and not isinstance(index, bool):
        return base[index] if -len(base) <= index < len(base) else ABSENT
    return NOT_RECORDED


# --- folds --------------------------------------------------------------------------------------


def _fold(expr: rules.Fold, frame: EvaluationContext) -> Datum:
    if expr.scope == "group":
        return folds.fold_many(expr.name, _of_members(expr.value, frame))
    if expr.scope == "time" and expr.over is not None:
        frames, complete = lookback.over(frame, expr.over)
        found = [_in(expr.value, each) for each in frames]
        return folds.fold_many(expr.name, found, complete)
    value = evaluate(expr.value, frame)
    if isinstance(value, Missing):
        return value
    if isinstance(value, Mapping) and expr.name == "count":
        return len(value)
    if not isinstance(value, tuple | frozenset):
        return NOT_RECORDED
    return folds.fold_list(expr.name, ordered(value, frame))


def _of_members(expr: Expr, frame: EvaluationContext) -> list[Datum]:
    """The value on each member of the group in order; not recorded where it has no instance."""
    instance = frame.instance
    if instance is None:
        return [evaluate(expr, frame)]
    return [_in(expr, frame.on_rank(rank, instance)) for rank in instance.members]


def _in(expr: Expr, frame: EvaluationContext | None) -> Datum:
    return NOT_RECORDED if frame is None else evaluate(expr, frame)


def _transpose(expr: rules.Transpose, frame: EvaluationContext) -> Datum:
    """Element i is x[k] of the i-th member, k this rank's place in the group's ranks."""
    instance = frame.instance
    if instance is None:
        return NOT_RECORDED
    place = instance.key.ranks.index(frame.local.line.rank)
    return tuple(
        value
        if isinstance(value, Missing)
        else (value[place] if place < len(value) else ABSENT)
        if isinstance(value, tuple)
        else NOT_RECORDED
        for value in _of_members(expr.value, frame)
    )


# --- look-backs ---------------------------------------------------------------------------------


def _previous(expr: rules.Previous, frame: EvaluationContext) -> Datum:
    moved = lookback.previous(frame)
    return Missing.NO_HISTORY if moved is None else evaluate(expr.value, moved)


def _first(expr: rules.First, frame: EvaluationContext) -> Datum:
    moved = lookback.first(expr.value, frame)
    return Missing.NO_HISTORY if moved is None else evaluate(expr.value, moved)


def _present(expr: rules.Present, frame: EvaluationContext) -> Datum:
    value = evaluate(expr.value, frame)
    if value is ABSENT:
        return False
    return value if isinstance(value, Missing) else True


# --- operators ----------------------------------------------------------------------------------


def _isinstance(arguments: Sequence[Datum], frame: EvaluationContext) -> Datum:
    value, wanted = arguments
    if isinstance(value, Ref | TimelineCall):
        value = field_of(value, "class", frame)
    return values.is_instance(value, wanted)


def _function(expr: rules.Function, frame: EvaluationContext) -> Datum:
    arguments = tuple(evaluate(argument, frame) for argument in expr.arguments)
    if expr.name == "isinstance":
        return _isinstance(arguments, frame)
    return values.function(expr.name, arguments)


def _all(items: Sequence[Expr], frame: EvaluationContext) -> list[Datum]:
    return [values.truth(evaluate(item, frame)) for item in items]


def _implies(expr: rules.Implies, frame: EvaluationContext) -> Datum:
    left, right = _all((expr.left, expr.right), frame)
    return values.disjunction((values.negation(left), right))


_MEANING: Mapping[type, Callable[[Any, EvaluationContext], Datum]] = {
    rules.Constant: lambda e, _: e.value,
    rules.ListDisplay: lambda e, f: tuple(evaluate(item, f) for item in e.items),
    rules.Ambient: _ambient,
    rules.Variable: lambda e, f: f.local.bindings[e.name],
    rules.WindowCall: lambda e, f: f.local.window.call or NOT_RECORDED,
    rules.LastCall: _last_call,
    rules.Subjects: _subjects,
    rules.Restrict: _restrict,
    rules.Calls: _calls,
    rules.Field: _field,
    rules.Feature: _feature,
    rules.Cast: _cast,
    rules.Difference: _difference,
    rules.Index: _index,
    rules.Old: lambda e, f: evaluate(e.value, lookback.old(f)),
    rules.Previous: _previous,
    rules.First: _first,
    rules.Present: _present,
    rules.Fold: _fold,
    rules.Transpose: _transpose,
    rules.Compare: lambda e, f: values.compare(e.op, evaluate(e.left, f), evaluate(e.right, f)),
    rules.Member: lambda e, f: values.member(evaluate(e.item, f), evaluate(e.collection, f)),
    rules.SameObject: lambda e, f: values.same_object(evaluate(e.left, f), evaluate(e.right, f)),
    rules.Arithmetic: lambda e, f: values.arithmetic(
        e.op, evaluate(e.left, f), evaluate(e.right, f)
    ),
    rules.Negate: lambda e, f: values.negate(evaluate(e.value, f)),
    rules.Not: lambda e, f: values.negation(values.truth(evaluate(e.value, f))),
    rules.And: lambda e, f: values.conjunction(_all(e.items, f)),
    rules.Or: lambda e, f: values.disjunction(_all(e.items, f)),
    rules.Implies: _implies,
    rules.Function: _function,
}
