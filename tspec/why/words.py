"""A rule in plain English, made from the typed rule: its window, its condition, its claim.


Words follow the structure: a condition becomes a clause ("the norm of p's grad is at most 10"), a value a
noun ("the norm of p's grad").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from tspec.builtin.actions import ACTIONS
from tspec.builtin.features import FEATURES
from tspec.builtin.folds import FOLDS
from tspec.builtin.functions import FUNCTIONS
from tspec.resolve.program import rules, types
from tspec.resolve.program.rules import Expr, Rule
from tspec.resolve.program.text import finite_number, pattern_text, text
from tspec.resolve.program.types import CallOf, ListOf


def sentences(rule: Rule) -> list[str]:
    """Two to four sentences: looks, where, expects, else."""
    found = [_looks(rule)]
    if rule.when is not None:
        found.append(f"It applies where {clause(rule.when)}.")
    found.append(f"It expects {_expected(rule)}.")
    if rule.responses:
        found.append(f"Otherwise it {_responses(rule)}.")
    return found


# --- when it looks ------------------------------------------------------------------------------


def _looks(rule: Rule) -> str:
    window = rule.window
    match window.kind:
        case "each":
            place = f"at the end of each {window.span}"
        case "calls":
            place = "at each call of " + _event(window.event)
        case "during":
            place = f"around each {_event(window.event)}, from call to return"
        case kind:
            place = f"{kind} each {_event(window.event)}"
    if window.every is not None:
        place += f", in every {_ordinal(window.every.count)} {window.every.unit}"
    if window.once:
        place += ", the first time only"
    subjects = [
        f"each {noun(subject.collection, one=True)} ({subject.variable})"
        for subject in rule.subjects
        if not (window.kind == "calls" and isinstance(subject.collection, rules.Calls))
    ]
    about = f", for {' and '.join(subjects)}" if subjects else ""
    return f"Checked {place}{about}{_across(rule)}."


def _across(rule: Rule) -> str:
    if not rule.across:
        return ""
    names = [
        each.name if isinstance(each, rules.Axis) else noun(each.value) for each in rule.across
    ]
    return f", on all ranks of {' and '.join(names)} together"


def _event(pattern: rules.EventPattern | None) -> str:
    return pattern_text(pattern) if pattern is not None else ""


def _ordinal(count: int) -> str:
    ending = (
        "th" if count % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(count % 10, "th")
    )
    return f"{count}{ending}"


# --- claims -------------------------------------------------------------------------------------


def _expected(rule: Rule) -> str:
    match rule.expect:
        case rules.Holds(condition=condition):
            return f"that {clause(condition)}"
        case rules.Contains(event=event):
            return f"a call of {_event(event)} in that time"
        case rules.Ordered(events=events, edge=edge):
            names = [_event(event) for event in events]
            if edge == "after":
                names.reverse()
            pairs = [
                f"an earlier {first} before each {second}" for first, second in pairwise(names)
            ]
            return " and ".join(pairs)
        case rules.OnlyDuring(subject=subject, change=change, events=events):
            what = f"{noun(subject)} changes" if change else f"{noun(subject)} happens"
            return f"that {what} only inside of {' or '.join(map(_event, events))}"


def _responses(rule: Rule) -> str:
    return ", then ".join(_response(each) for each in rule.responses)


def _response(each: rules.Response) -> str:
    said = ACTIONS[each.action].words
    if each.consecutive is not None:
        return f"{said} after {each.consecutive} failing checks in a row"
    if each.frequent is not None and each.among is not None:
        return (
            f"{said} after {each.frequent} failing checks in {each.among.count} {each.among.unit}s"
        )
    return said


# --- conditions ---------------------------------------------------------------------------------

_COMPARED = {
    "==": "is", "!=": "is not", "<": "is below", "<=": "is at most", ">": "is above",
    ">=": "is at least",
}  # fmt: skip


def clause(expr: Expr, no: bool = False) -> str:
    """A condition as a clause; with `no` that it is not so."""
    number = finite_number(expr)
    if number is not None:
        return f"{noun(number)} is {'not ' if no else ''}finite"
    changed = _changed(expr)
    if changed is not None:
        stays = (expr.op == "==") is not no if isinstance(expr, rules.Compare) else no
        return f"{noun(changed)} {'stays as it was' if stays else 'has changed'}"
    found = _CLAUSES.get(type(expr))
    if found is not None:
        return found(expr, no)
    return f"{noun(expr)} is {'false' if no else 'true'}"


def _changed(expr: Expr) -> Expr | None:
    """The x of `changed(x)`, which is resolved to digests that differ."""
    if not isinstance(expr, rules.Compare) or expr.op not in ("==", "!="):
        return None
    for now, was in ((expr.left, expr.right), (expr.right, expr.left)):
        if isinstance(was, rules.Old) and was.value == now and isinstance(now, rules.Feature):
            return now.tensor if now.name == "digest" else None
    return None


def _compare(expr: rules.Compare, no: bool) -> str:
    left, right, op = expr.left, expr.right, expr.op
    if isinstance(right, rules.Constant) and isinstance(right.value, bool) and op in ("==", "!="):
        return clause(left, (right.value is (op == "!=")) is not no)
    said = f"{noun(left)} {_COMPARED[op]} {noun(right)}"
    return f"not ({said})" if no else said


def _junction(word: str) -> Callable[[Any, bool], str]:
    def joined(expr: rules.And | rules.Or, no: bool) -> str:
        said = f" {word} ".join(
            f"({clause(item)})" if isinstance(item, rules.And | rules.Or) else clause(item)
            for item in expr.items
        )
        return f"not ({said})" if no else said

    return joined


def _implies(expr: rules.Implies, no: bool) -> str:
    said = f"if {clause(expr.left)} then {clause(expr.right)}"
    return f"not ({said})" if no else said


def _present(expr: rules.Present, no: bool) -> str:
    return f"{noun(expr.value)} is {'absent' if no else 'there'}"


def _member(expr: rules.Member, no: bool) -> str:
    return f"{noun(expr.item)} is {'not ' if no else ''}among {noun(expr.collection)}"


def _feature_clause(expr: rules.Feature, no: bool) -> str:
    word = {"finite": "finite", "requires_grad": "to be trained"}.get(expr.name, expr.name)
    return f"{noun(expr.tensor)} is {'not ' if no else ''}{word}"


def _fold_clause(expr: rules.Fold, no: bool) -> str:
    where = _over(expr)
    if expr.name in ("any", "all"):
        which = {"any": "at least once", "all": "each time"}[expr.name]
        if expr.scope == "list" and isinstance(expr.value.type, ListOf):
            which = {"any": "some of", "all": "all of"}[expr.name]
            said = f"{which} {noun(expr.value)} {'are' if expr.name == 'all' else 'is'} true"
        elif expr.scope == "group":
            which = {"any": "on at least one rank", "all": "on all ranks"}[expr.name]
            said = f"{which} {clause(expr.value)}"
        else:
            said = f"{which}{where} {clause(expr.value)}"
        return f"not ({said})" if no else said
    if expr.name in ("same", "distinct"):
        alike = (expr.name == "same") is not no
        on = " on all ranks" if expr.scope == "group" else where or " everywhere"
        value = noun(expr.value)
        if expr.name == "distinct":
            return f"{'two' if no else 'no two'} of {value}{where or on} are the same"
        return f"{value} is {'the same' if alike else 'not the same'}{on}"
    return f"{noun(expr)} is {'false' if no else 'true'}"


def _over(expr: rules.Fold) -> str:
    if expr.over is None:
        return ""
    count, unit = expr.over.count, expr.over.unit
    return f" over the last {count} {unit}s" if count > 1 else f" in the same {unit}"


def _function_clause(expr: rules.Function, no: bool) -> str:
    function = FUNCTIONS[expr.name]
    if function.phrase is None or function.result != "bool":
        return f"{noun(expr)} is {'false' if no else 'true'}"
    first, second = map(noun, expr.arguments)
    said = f"{first} {function.phrase} {second}"
    return f"not ({said})" if no else said


_CLAUSES: Mapping[type, Callable[[Any, bool], str]] = {
    rules.Compare: _compare,
    rules.And: _junction("and"),
    rules.Or: _junction("or"),
    rules.Not: lambda e, no: clause(e.value, not no),
    rules.Implies: _implies,
    rules.Present: _present,
    rules.Member: _member,
    rules.SameObject: lambda e, no: (
        f"{noun(e.left)} is {'not ' if no else ''}the object {noun(e.right)}"
    ),
    rules.Feature: _feature_clause,
    rules.Fold: _fold_clause,
    rules.Function: _function_clause,
    rules.Old: lambda e, no: f"at the start {clause(e.value, no)}",
    rules.Previous: lambda e, no: f"the time before {clause(e.value, no)}",
    rules.First: lambda e, no: f"at first {clause(e.value, no)}",
}


# --- values -------------------------------------------------------------------------------------


def noun(expr: Expr, one: bool = False) -> str:
    """A value as a noun; of a collection with `one`, one of it."""
    found = _NOUNS.get(type(expr))
    if isinstance(expr, rules.Subjects | rules.Restrict | rules.Calls):
        return _collection(expr, one)
    if one and isinstance(expr, rules.Field):
        return f"one of {noun(expr)}"
    if found is not None and not (isinstance(expr, rules.Function) and expr.type == types.BOOL):
        return found(expr)
    return f"whether {clause(expr)}" if expr.type == types.BOOL else f"`{text(expr)}`"


def _collection(expr: rules.Subjects | rules.Restrict | rules.Calls, one: bool) -> str:
    if isinstance(expr, rules.Calls):
        head = f"call{'' if one else 's'} of {' or '.join(expr.event.events)}"
        return head + _filters(expr.event.filters)
    if isinstance(expr, rules.Subjects):
        name = expr.kind if one else text(rules.Subjects(expr.type, expr.span, expr.kind))
        return ("" if one else "all ") + name.replace("_", " ") + _filters(expr.filters)
    return noun(expr.collection, one) + _filters(expr.filters)


def _filters(filters: tuple[rules.Filter, ...]) -> str:
    parts = [f"{each.field} {noun(each.value)}" for each in filters]
    return f" with {' and '.join(parts)}" if parts else ""


def _field(expr: rules.Field) -> str:
    base, name = expr.base, expr.name
    if isinstance(base, rules.Variable | rules.Field) and not isinstance(base.type, ListOf):
        owner = noun(base)
        return f"{owner}' {name}" if owner.endswith("s") else f"{owner}'s {name}"
    if isinstance(base, rules.WindowCall | rules.LastCall):
        return f"the {name} of that {noun(base)}"
    return f"the {name} of {noun(base)}"


def _feature(expr: rules.Feature) -> str:
    phrase = FEATURES[expr.name].phrase or f"the {expr.name} of {{}}"
    return phrase.format(noun(expr.tensor))


def _fold(expr: rules.Fold) -> str:
    head = FOLDS[expr.name].words
    if head is None:
        return f"whether {clause(expr)}"
    where = " over the ranks" if expr.scope == "group" else _over(expr)
    value = expr.value
    if expr.name == "count" and value.type == types.SHAPE and isinstance(value, rules.Feature):
        return f"{head} dimensions of {noun(value.tensor)}"
    if expr.name == "count" and isinstance(value, rules.Field | rules.Subjects):
        of = value.base if isinstance(value, rules.Field) else value
        if isinstance(of, rules.Subjects):
            having = f" with a {value.name}" if isinstance(value, rules.Field) else ""
            return f"{head} {noun(of).removeprefix('all ')}{having}{where}"
    return f"{head} {noun(value)}{where}"


def _arithmetic(expr: rules.Arithmetic) -> str:
    word = {"+": "plus", "-": "minus", "*": "times", "/": "divided by"}[expr.op]
    parts = [
        f"({noun(side)})" if expr.op in "*/" and _is_sum(side) else noun(side)
        for side in (expr.left, expr.right)
    ]
    return f"{parts[0]} {word} {parts[1]}"


def _is_sum(expr: Expr) -> bool:
    return isinstance(expr, rules.Arithmetic) and expr.op in "+-"


def _looked_back(word: str, behind: str) -> Callable[[Any], str]:
    """`the previous loss`; `p's lr the time before`."""

    def said(expr: rules.Previous | rules.First) -> str:
        value = noun(expr.value)
        if value.startswith("the "):
            return f"the {word} {value.removeprefix('the ')}"
        return f"{value} {behind}"

    return said


def _difference(expr: rules.Difference) -> str:
    left = noun(expr.left)
    if isinstance(expr.right, rules.Old) and noun(expr.right.value) == left:
        return f"what changes in {left}"
    return f"{left} less {noun(expr.right)}"


_ORDINALS: Mapping[object, str] = {0: "first", 1: "second", 2: "third", -1: "last"}


def _index(expr: rules.Index) -> str:
    """`the size of dimension 0 of x`; `the first of its tensors`."""
    base, index = expr.base, expr.index
    if isinstance(base, rules.Feature) and base.name == "shape":
        return f"the size of dimension {text(index)} of {noun(base.tensor)}"
    place = index.value if isinstance(index, rules.Constant) else None
    if place in _ORDINALS:
        return f"the {_ORDINALS[place]} of {noun(base)}"
    return f"element {text(index)} of {noun(base)}"


def _function(expr: rules.Function) -> str:
    function = FUNCTIONS[expr.name]
    if function.phrase is None or function.result == "bool":
        return f"`{text(expr)}`"
    return function.phrase.format(
        *(f"({noun(value)})" if _is_sum(value) else noun(value) for value in expr.arguments)
    )


def _constant(expr: rules.Constant) -> str:
    if isinstance(expr.value, str) and str(expr.type) == "class":
        return expr.value.rpartition(".")[2]
    return text(expr)


def _ambient(expr: rules.Ambient) -> str:
    return f"the {expr.name}" if "." not in expr.name else expr.name


_NOUNS: Mapping[type, Callable[[Any], str]] = {
    rules.Constant: _constant,
    rules.Variable: lambda e: "the call" if isinstance(e.type, CallOf) else e.name,
    rules.WindowCall: lambda e: str(e.type).removeprefix("call of "),
    rules.LastCall: lambda e: f"last {pattern_text(e.event)}",
    rules.Ambient: _ambient,
    rules.Field: _field,
    rules.Feature: _feature,
    rules.Fold: _fold,
    rules.Arithmetic: _arithmetic,
    rules.ListDisplay: lambda e: " or ".join(map(noun, e.items)),
    rules.Old: lambda e: f"{noun(e.value)} at the start",
    rules.Previous: _looked_back("previous", "the time before"),
    rules.First: _looked_back("first", "at first"),
    rules.Function: _function,
    rules.Transpose: lambda e: f"what each rank has for this one of {noun(e.value)}",
    rules.Negate: lambda e: f"minus {noun(e.value)}",
    rules.Difference: _difference,
    rules.Cast: lambda e: f"{noun(e.tensor)} in {noun(e.dtype)}",
    rules.Index: _index,
}
