"""Functions that read a tensor through one of its features."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import NoReturn

from tspec.builtin.features import FEATURES, FUNCTIONS
from tspec.builtin.folds import FOLDS
from tspec.diagnostics import did_you_mean
from tspec.resolve.expressions.arguments import Arguments, take
from tspec.resolve.expressions.environment import Environment
from tspec.resolve.expressions.operators import named
from tspec.resolve.program import rules, types
from tspec.resolve.program.queries import looks_back
from tspec.resolve.program.types import ListOf, Type, item_of
from tspec.syntax import nodes

RESULTS: Mapping[str, Type] = {
    name: types.FLOAT
    if FEATURES[name].bounds == "fraction"
    else {"int": types.INT, "float": types.FLOAT, "bool": types.BOOL}[FEATURES[name].kind]
    for name in FUNCTIONS
}
"""The result type of each feature that is read as a function."""

TENSOR_FUNCTIONS = (*(name for name in FUNCTIONS if name not in FOLDS), "cast", "difference")
"""Functions that are features only; `min`, `max`, `sum`, `mean` and `std` are also folds."""

_LARGEST = sys.float_info.max


def is_tensor(of: Type) -> bool:
    """True if a type has features: a tensor, a list of tensors, or a difference of two."""
    return types.TENSOR in (of, item_of(of)) or of == types.DIFFERENCE


def tensor_function(node: nodes.Call, name: str, env: Environment) -> rules.Expr:
    """One of TENSOR_FUNCTIONS. Raises Refused."""
    if name == "cast":
        return _cast(node, env)
    if name == "difference":
        return _difference(node, env)
    arguments = take(node, env, 1, ("per",) if name == "norm" else ())
    value = env.lower(arguments.values[0])
    of = env.there(value)
    if name == "finite" and of in (types.FLOAT, types.INT, types.SCALAR):
        return _finite_number(value, node)
    if not is_tensor(of):
        _refuse(name, of, arguments, env)
    return feature(name, value, arguments, node, env)


def feature(
    name: str, value: rules.Expr, arguments: Arguments, node: nodes.Call, env: Environment
) -> rules.Feature:
    """A feature of a tensor, whole, per row or column, or along a dimension."""
    result = RESULTS[name]
    single = env.there(value) == types.TENSOR
    for option in arguments.named:
        if not single:
            message = f"`{option}:` cuts one tensor, and this is {named(env.there(value))}"
            env.refuse("TS0130", message, arguments.values[0])
    if "per" in arguments.named:
        per = _word(arguments.named["per"], ("row", "column"), env)
        return rules.Feature(ListOf(result), node.span, name, value, per)
    if "dim" in arguments.named:
        dim = env.lower(arguments.named["dim"])
        if not isinstance(dim, rules.Constant) or dim.type != types.INT:
            env.refuse("TS0130", "`dim:` takes a number, such as 0 or -1", arguments.named["dim"])
        return rules.Feature(ListOf(result), node.span, name, value, None, int(dim.value))
    return rules.Feature(result, node.span, name, value)


def _word(node: nodes.Expr, words: tuple[str, ...], env: Environment) -> str:
    if isinstance(node, nodes.Name) and node.text in words:
        return node.text
    text = env.scope.source.slice(node.span)
    hint = did_you_mean(text, words) or f"it is {' or '.join(f'`{word}`' for word in words)}"
    env.refuse("TS0135", f"`{text}` is no part of a tensor", node, hint)


def _cast(node: nodes.Call, env: Environment) -> rules.Expr:
    arguments = take(node, env, 2)
    value = env.lower(arguments.values[0])
    of = env.there(value)
    if of != types.TENSOR:
        env.refuse("TS0130", f"`cast` takes a tensor, not {named(of)}", arguments.values[0])
    dtype = env.lower(arguments.values[1], types.DTYPE)
    if env.there(dtype) != types.DTYPE:
        message = f"`cast` takes a dtype, not {named(env.there(dtype))}"
        env.refuse("TS0130", message, arguments.values[1])
    return rules.Cast(types.TENSOR, node.span, value, dtype)


def _difference(node: nodes.Call, env: Environment) -> rules.Expr:
    arguments = take(node, env, 2)
    sides = []
    for argument in arguments.values:
        side = env.lower(argument)
        of = env.there(side)
        if of != types.TENSOR:
            hint = "of numbers, write `x - y`" if of in (types.FLOAT, types.INT) else None
            env.refuse("TS0130", f"`difference` takes tensors, not {named(of)}", argument, hint)
        if looks_back(side):
            hint = "it can be `old(x)`, or the `first` one of a subject"
            env.refuse(
                "TS0150", "no copy is kept of a tensor of an earlier instance", argument, hint
            )
        sides.append(side)
    return rules.Difference(types.DIFFERENCE, node.span, *sides)


def _finite_number(value: rules.Expr, node: nodes.Call) -> rules.Expr:
    """`isfinite` of a number: its magnitude is at most the largest float64, which is false of NaN."""
    size = rules.Function(types.FLOAT, node.span, "abs", (value,))
    largest = rules.Constant(types.FLOAT, node.span, _LARGEST)
    return rules.Compare(types.BOOL, node.span, "<=", size, largest)


def _refuse(name: str, of: Type, arguments: Arguments, env: Environment) -> NoReturn:
    hint = None
    if name == "norm" and of in (types.FLOAT, types.INT):
        hint = "of a number, write `abs(...)`"
    elif name == "numel" and item_of(of) is not None:
        hint = "of a list, write `count(...)`"
    elif name == "digest":
        hint = "other values are compared as they are"
    message = f"`{name}` takes a tensor, not {named(of)}"
    env.refuse("TS0130", message, arguments.values[0], hint)
