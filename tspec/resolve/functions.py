"""What stands before parentheses: functions, and filters of collections."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import get_args

from tspec.resolve import rules, types
from tspec.resolve.arguments import Arguments, take
from tspec.resolve.events import calls, filters_of
from tspec.resolve.folds import FOLDS, fold
from tspec.resolve.moments import MOMENTS, moment
from tspec.resolve.operators import named
from tspec.resolve.paths import path_of
from tspec.resolve.place import Place
from tspec.resolve.tensors import TENSOR_FUNCTIONS, tensor_function
from tspec.resolve.type_names import item_of, plain
from tspec.resolve.types import CallOf, Entity, ListOf, Type
from tspec.syntax import nodes

_NUMBERS: Mapping[str, Type] = {
    "abs": types.FLOAT,
    "sqrt": types.FLOAT,
    "log": types.FLOAT,
    "exp": types.FLOAT,
    "ceil": types.INT,
    "floor": types.INT,
    "round": types.INT,
}
_TEXTS = ("endswith", "startswith", "matches")


def lower_call(node: nodes.Call, place: Place) -> rules.Expr:
    """`f(x)`, or `collection(field: value)`. Raises Refused."""
    path = path_of(node.function)
    if path is None or len(path.words) > 1 or path.words[0] not in _FUNCTIONS:
        return _restrict(node, place)
    return _FUNCTIONS[path.words[0]](node, path.words[0], place)


def _restrict(node: nodes.Call, place: Place) -> rules.Expr:
    """Filters of a collection; anything else before parentheses is no function."""
    path = path_of(node.function)
    scope = place.scope
    if path is not None:
        first = path.words[0]
        is_value = first in place.variables or first in scope.lets or first in scope.aliases
        if path.text() in scope.events:
            hint = f"its calls are `calls({path.text()}, ...)`"
            place.refuse(
                "TS0126", f"`{path.text()}` is an event, and no value", node.function, hint
            )
        if len(path.words) == 1 and not is_value and first not in scope.collections:
            if first in scope.ambient:
                place.refuse("TS0123", f"`{first}` is a value, and no function", node.function)
            known = [*_FUNCTIONS, *scope.collections, *scope.lets]
            place.refuse(
                "TS0123", f"there is no function `{first}`", node.function, scope.hint(first, known)
            )
    base = place.lower(node.function)
    of = place.there(base)
    item = item_of(of)
    if not isinstance(item, Entity | CallOf):
        place.refuse("TS0123", f"{named(of)} takes no arguments", node.function)
    if not node.arguments:
        place.refuse("TS0128", "the parentheses hold no filter", node, "leave them out")
    filters = filters_of(node.arguments, item, place)
    if isinstance(base, rules.Subjects):
        return replace(base, span=node.span, filters=base.filters + filters)
    return rules.Restrict(of, node.span, base, filters)


# --- functions of known values ------------------------------------------------------------------


def _number(node: nodes.Call, name: str, place: Place) -> rules.Expr:
    arguments = take(node, place, 1)
    value = place.lower(arguments.values[0])
    of = place.there(value)
    if of not in (types.INT, types.FLOAT, types.SCALAR):
        _refuse_argument(name, "a number", of, arguments, place)
    result = types.INT if name == "abs" and of == types.INT else _NUMBERS[name]
    return rules.Function(result, node.span, _function_name(name), (value,))


def _text(node: nodes.Call, name: str, place: Place) -> rules.Expr:
    arguments = take(node, place, 2)
    values = place.lower_all(arguments.values)
    for value in values:
        of = place.there(value)
        if of not in (types.STRING, types.SCALAR):
            _refuse_argument(name, "text", of, arguments, place)
    if name == "matches" and isinstance(values[1], rules.Constant):
        _check_pattern(values[1], place)
    return rules.Function(types.BOOL, node.span, _function_name(name), values)


def _check_pattern(value: rules.Constant, place: Place) -> None:
    try:
        re.compile(str(value.value))
    except re.error as problem:
        place.refuse("TS0129", f"this is no regular expression: {problem.msg}", value.span)


def _ulp(node: nodes.Call, name: str, place: Place) -> rules.Expr:
    arguments = take(node, place, 1)
    value = place.lower(arguments.values[0], types.DTYPE)
    if place.there(value) != types.DTYPE:
        _refuse_argument(name, "a dtype", plain(value.type), arguments, place)
    return rules.Function(types.FLOAT, node.span, "ulp", (value,))


def _divisible(node: nodes.Call, name: str, place: Place) -> rules.Expr:
    arguments = take(node, place, 1, ("by",))
    if "by" not in arguments.named:
        place.refuse("TS0127", "`divisible` lacks `by:`", node, "write `divisible(x, by: 8)`")
    value = place.lower(arguments.values[0])
    of = place.there(value)
    by = place.lower(arguments.named["by"])
    if place.there(by) != types.INT:
        _refuse_argument(name, "an int after `by:`", plain(by.type), arguments, place)
    if isinstance(by, rules.Constant) and by.value == 0:
        place.refuse("TS0129", "nothing is divided by 0", arguments.named["by"])
    inner = item_of(of) or of
    if inner not in (types.INT, types.SCALAR):
        _refuse_argument(name, "ints", of, arguments, place)
    result: Type = types.BOOL if item_of(of) is None else ListOf(types.BOOL)
    return rules.Function(result, node.span, "divisible", (value, by))


def _isinstance(node: nodes.Call, name: str, place: Place) -> rules.Expr:
    arguments = take(node, place, 2)
    value = place.lower(arguments.values[0])
    of = place.there(value)
    has_class = of == types.CLASS
    if isinstance(of, Entity):
        entity = place.scope.entity(of.kind)
        has_class = entity is not None and entity.field("class") is not None
    if not has_class:
        _refuse_argument(name, "something with a class", of, arguments, place)
    cls = place.lower(arguments.values[1], types.CLASS)
    kind = place.there(cls)
    if types.CLASS not in (kind, item_of(kind)):
        place.refuse(
            "TS0130", f"`isinstance` takes a class or a list of them, not {named(kind)}", cls.span
        )
    return rules.Function(types.BOOL, node.span, "isinstance", (value, cls))


def _transpose(node: nodes.Call, name: str, place: Place) -> rules.Expr:
    if not place.across:
        hint = "it exchanges lists between the ranks of a group: add `across`"
        place.refuse("TS0151", "`transpose` means something only under `across`", node, hint)
    arguments = take(node, place, 1)
    value = place.lower(arguments.values[0])
    of = place.there(value)
    if not isinstance(of, ListOf):
        _refuse_argument(name, "a list with an element for each rank", of, arguments, place)
    return rules.Transpose(of, node.span, value)


def _refuse_argument(name: str, takes: str, of: Type, arguments: Arguments, place: Place) -> None:
    hint = None
    if of == types.TENSOR and name in _NUMBERS:
        hint = "a tensor is read through a feature, such as `norm(...)` or `max(...)`"
    place.refuse("TS0130", f"`{name}` takes {takes}, not {named(of)}", arguments.values[0], hint)


def _function_name(name: str) -> rules.FunctionName:
    for each in get_args(rules.FunctionName):
        if each == name:
            found: rules.FunctionName = each
            return found
    raise AssertionError(name)


_Typer = Callable[[nodes.Call, str, Place], rules.Expr]

_FUNCTIONS: Mapping[str, _Typer] = {
    **dict.fromkeys(_NUMBERS, _number),
    **dict.fromkeys(_TEXTS, _text),
    **dict.fromkeys(FOLDS, fold),
    **dict.fromkeys(TENSOR_FUNCTIONS, tensor_function),
    **dict.fromkeys(MOMENTS, moment),
    "ulp": _ulp,
    "divisible": _divisible,
    "isinstance": _isinstance,
    "transpose": _transpose,
    "calls": calls,
}
