"""Calls of functions, and filters of collections."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import NoReturn

from tspec.builtin.folds import FOLDS
from tspec.builtin.functions import FUNCTIONS
from tspec.resolve.expressions.arguments import take
from tspec.resolve.expressions.environment import Environment
from tspec.resolve.expressions.events import calls, filters_of
from tspec.resolve.expressions.folds import fold
from tspec.resolve.expressions.moments import MOMENTS, moment
from tspec.resolve.expressions.operators import named
from tspec.resolve.expressions.paths import path_of
from tspec.resolve.expressions.tensors import TENSOR_FUNCTIONS, tensor_function
from tspec.resolve.program import rules, types
from tspec.resolve.program.types import CallOf, Entity, ListOf, Type, item_of, plain
from tspec.syntax import nodes

_TYPES: Mapping[str, tuple[str, tuple[Type, ...]]] = {
    "number": ("a number", (types.INT, types.FLOAT, types.SCALAR)),
    "text": ("text", (types.STRING, types.SCALAR)),
    "dtype": ("a dtype", (types.DTYPE,)),
}
"""The word of messages for a kind of argument, and the types that it may have."""


def lower_call(node: nodes.Call, env: Environment) -> rules.Expr:
    """`f(x)`, or `collection(field: value)`. Raises Refused."""
    path = path_of(node.function)
    if path is None or len(path.words) > 1 or path.words[0] not in _FUNCTIONS:
        return _restrict(node, env)
    return _FUNCTIONS[path.words[0]](node, path.words[0], env)


def is_function(name: str) -> bool:
    """True if a name before parentheses is a function of the language."""
    return name in _FUNCTIONS


def _restrict(node: nodes.Call, env: Environment) -> rules.Expr:
    """Filters of a collection; anything else before parentheses is no function."""
    path = path_of(node.function)
    scope = env.scope
    if path is not None:
        first = path.words[0]
        is_value = first in env.variables or first in scope.lets or first in scope.aliases
        if path.text() in scope.events:
            hint = f"its calls are `calls({path.text()}, ...)`"
            env.refuse("TS0126", f"`{path.text()}` is an event, and no value", node.function, hint)
        if len(path.words) == 1 and not is_value and first not in scope.collections:
            if first in scope.ambient:
                env.refuse("TS0123", f"`{first}` is a value, and no function", node.function)
            known = [*_FUNCTIONS, *scope.collections, *scope.lets]
            env.refuse(
                "TS0123", f"there is no function `{first}`", node.function, scope.hint(first, known)
            )
    base = env.lower(node.function)
    of = env.there(base)
    item = item_of(of)
    if not isinstance(item, Entity | CallOf):
        env.refuse("TS0123", f"{named(of)} takes no arguments", node.function)
    if not node.arguments:
        env.refuse("TS0128", "the parentheses hold no filter", node, "leave them out")
    filters = filters_of(node.arguments, item, env)
    if isinstance(base, rules.Subjects):
        return replace(base, span=node.span, filters=base.filters + filters)
    return rules.Restrict(of, node.span, base, filters)


# --- functions of known values ------------------------------------------------------------------


def _function(node: nodes.Call, name: str, env: Environment) -> rules.Expr:
    """A function whose arguments are described by its row in the table. Raises Refused."""
    function = FUNCTIONS[name]
    arguments = take(node, env, len(function.takes))
    found = env.lower_all(arguments.values, types.DTYPE if "dtype" in function.takes else None)
    for kind, argument, value in zip(function.takes, arguments.values, found, strict=True):
        takes, fitting = _TYPES[kind]
        if env.there(value) not in fitting:
            _refuse_argument(name, takes, env.there(value), argument, env)
    if name == "matches" and isinstance(found[1], rules.Constant):
        _check_pattern(found[1], env)
    result = _RESULTS[function.result]
    if function.result == "number" and env.there(found[0]) == types.INT:
        result = types.INT
    return rules.Function(result, node.span, name, found)


_RESULTS: Mapping[str, Type] = {
    "bool": types.BOOL,
    "int": types.INT,
    "float": types.FLOAT,
    "number": types.FLOAT,
    "string": types.STRING,
}


def _check_pattern(value: rules.Constant, env: Environment) -> None:
    try:
        re.compile(str(value.value))
    except re.error as problem:
        env.refuse("TS0129", f"this is no regular expression: {problem.msg}", value.span)


def _divisible(node: nodes.Call, name: str, env: Environment) -> rules.Expr:
    arguments = take(node, env, 1, ("by",))
    if "by" not in arguments.named:
        env.refuse("TS0127", "`divisible` lacks `by:`", node, "write `divisible(x, by: 8)`")
    value = env.lower(arguments.values[0])
    of = env.there(value)
    by = env.lower(arguments.named["by"])
    if env.there(by) != types.INT:
        _refuse_argument(name, "an int after `by:`", plain(by.type), arguments.values[0], env)
    if isinstance(by, rules.Constant) and by.value == 0:
        env.refuse("TS0129", "nothing is divided by 0", arguments.named["by"])
    inner = item_of(of) or of
    if inner not in (types.INT, types.SCALAR):
        _refuse_argument(name, "ints", of, arguments.values[0], env)
    result: Type = types.BOOL if item_of(of) is None else ListOf(types.BOOL)
    return rules.Function(result, node.span, "divisible", (value, by))


def _isinstance(node: nodes.Call, name: str, env: Environment) -> rules.Expr:
    arguments = take(node, env, 2)
    value = env.lower(arguments.values[0])
    of = env.there(value)
    has_class = of == types.CLASS
    if isinstance(of, Entity):
        entity = env.scope.entity(of.kind)
        has_class = entity is not None and entity.field("class") is not None
    if not has_class:
        _refuse_argument(name, "something with a class", of, arguments.values[0], env)
    cls = env.lower(arguments.values[1], types.CLASS)
    kind = env.there(cls)
    if types.CLASS not in (kind, item_of(kind)):
        env.refuse(
            "TS0130", f"`isinstance` takes a class or a list of them, not {named(kind)}", cls.span
        )
    return rules.Function(types.BOOL, node.span, "isinstance", (value, cls))


def _transpose(node: nodes.Call, name: str, env: Environment) -> rules.Expr:
    if not env.across:
        hint = "it exchanges lists between the ranks of a group: add `across`"
        env.refuse("TS0151", "`transpose` means something only under `across`", node, hint)
    arguments = take(node, env, 1)
    value = env.lower(arguments.values[0])
    of = env.there(value)
    if not isinstance(of, ListOf):
        _refuse_argument(name, "a list with an element for each rank", of, arguments.values[0], env)
    return rules.Transpose(of, node.span, value)


def _refuse_argument(
    name: str, takes: str, of: Type, argument: nodes.Expr, env: Environment
) -> NoReturn:
    hint = None
    if of == types.TENSOR and takes == "a number":
        hint = "a tensor is read through a feature, such as `norm(...)` or `max(...)`"
    env.refuse("TS0130", f"`{name}` takes {takes}, not {named(of)}", argument, hint)


_Typer = Callable[[nodes.Call, str, Environment], rules.Expr]

_FUNCTIONS: Mapping[str, _Typer] = {
    **dict.fromkeys(FUNCTIONS, _function),
    **dict.fromkeys(FOLDS, fold),
    **dict.fromkeys(TENSOR_FUNCTIONS, tensor_function),
    **dict.fromkeys(MOMENTS, moment),
    "divisible": _divisible,
    "isinstance": _isinstance,
    "transpose": _transpose,
    "calls": calls,
}
