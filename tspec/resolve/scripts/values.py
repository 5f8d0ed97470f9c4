"""Values in scripts: numbers, words, subjects, lists, and tensors by their features."""

from __future__ import annotations

import math
from collections.abc import Mapping

from tspec.builtin.features import FEATURES as rows
from tspec.diagnostics import did_you_mean, with_article
from tspec.resolve import torch_names
from tspec.resolve.expressions.environment import Environment
from tspec.resolve.expressions.fields import FEATURES
from tspec.resolve.expressions.operators import named
from tspec.resolve.expressions.tensors import RESULTS
from tspec.resolve.names.type_names import comparable
from tspec.resolve.program import rules, types
from tspec.resolve.program.scripts import (
    ClassValue,
    Keyword,
    ListValue,
    MapValue,
    Named,
    ScriptValue,
    TensorValue,
)
from tspec.resolve.program.types import Entity, MapOf, Optional, SetOf, Type, item_of, plain
from tspec.syntax import nodes

TENSOR_FEATURES: Mapping[str, Type] = {**FEATURES, **RESULTS}
"""The features of a tensor that a script can set, and their types."""


def script_value(node: nodes.Expr, of: Type, env: Environment) -> ScriptValue:
    """The value that a script gives to something of a type. Raises Refused, after it was reported."""
    kind = plain(of)
    if isinstance(node, nodes.Name) and node.text == "absent":
        if isinstance(of, Optional):
            return Keyword("absent", node.span)
        env.refuse("TS0133", f"this is {named(kind)}, and never absent", node)
    if kind == types.TENSOR:
        return _tensor(node, of, env)
    if isinstance(kind, Entity):
        return _subject(node, kind, env)
    number = _number(node) if kind in (types.FLOAT, types.SCALAR) else None
    if number is not None:
        return number
    item = item_of(kind)
    if isinstance(node, nodes.List | nodes.Set) and item is not None:
        return ListValue(
            tuple(script_value(each, item, env) for each in node.items), isinstance(kind, SetOf)
        )
    if isinstance(kind, MapOf):
        return _entries(node, kind, env)
    if kind == types.GROUP:
        return _group(node, env)
    return _constant(node, kind, env)


def _constant(node: nodes.Expr, kind: Type, env: Environment) -> ScriptValue:
    found = env.lower(node, kind)
    of = env.there(found)
    if kind == types.CLASS and of == types.CLASS and isinstance(found, rules.Constant):
        return ClassValue(torch_names.spellings(str(found.value)))
    if not comparable(kind, of) or (kind == types.INT and of == types.FLOAT):
        env.refuse("TS0133", f"this is {named(kind)}, and never {named(of)}", node)
    value = known(found)
    if value is None:
        hint = "a script has numbers, words, lists and subjects"
        env.refuse("TS0193", "this value is not known before the script runs", node, hint)
    return float(value) if kind == types.FLOAT and isinstance(value, int) else value


def known(expr: rules.Expr) -> ScriptValue | None:
    """The value of an expression of constants; None for all else."""
    match expr:
        case rules.Constant(value=value):
            return value
        case rules.Negate(value=inner):
            number = known(inner)
            return -number if isinstance(number, int | float) else None
        case rules.ListDisplay(items=items):
            found = [known(item) for item in items]
            there = tuple(item for item in found if item is not None)
            return ListValue(there) if len(there) == len(found) else None
        case rules.Arithmetic(op=op, left=left, right=right):
            return _reckoned(op, known(left), known(right))
    return None


def _reckoned(op: str, left: ScriptValue | None, right: ScriptValue | None) -> ScriptValue | None:
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        return None
    if op == "/":
        return left / right if right else None
    return left + right if op == "+" else left - right if op == "-" else left * right


def _number(node: nodes.Expr) -> float | None:
    """`nan`, `inf`, `-inf`."""
    if isinstance(node, nodes.Name) and node.text in ("nan", "inf"):
        return float(node.text)
    if isinstance(node, nodes.Negative) and isinstance(node.value, nodes.Name):
        return -math.inf if node.value.text == "inf" else None
    return None


def _entries(node: nodes.Expr, kind: MapOf, env: Environment) -> ScriptValue:
    """`[entry("w", tensor(norm: 1.0))]`."""
    found: dict[str, ScriptValue] = {}
    for each in node.items if isinstance(node, nodes.List) else (node,):
        match each:
            case nodes.Call(
                function=nodes.Name(text="entry"),
                arguments=(
                    nodes.Argument(name=None, value=nodes.String(value=key)),
                    nodes.Argument(name=None, value=value),
                ),
            ):
                found[key] = script_value(value, kind.value, env)
            case _:
                hint = 'write `[entry("its key", 1), entry("another", 2)]`'
                env.refuse("TS0133", f"this is {named(kind)}", each, hint)
    return MapValue(tuple(found.items()))


def _group(node: nodes.Expr, env: Environment) -> ScriptValue:
    """An axis by its name, or the list of its ranks."""
    if isinstance(node, nodes.List):
        return ListValue(tuple(script_value(each, types.INT, env) for each in node.items))
    if isinstance(node, nodes.Name) and node.text in env.scope.axes:
        return node.text
    hint = "write an axis, such as `dp`, or the ranks, such as `[0, 1]`"
    env.refuse("TS0133", "this is no group of ranks", node, hint)


def _subject(node: nodes.Expr, kind: Entity, env: Environment) -> ScriptValue:
    found = subject(node)
    if found is not None and found.kind == kind.kind:
        return found
    message = f"this is {named(kind)}"
    if found is None:
        env.lower(node, kind)  # reports the fault of a term that is no value at all
    else:
        message += f", and never {with_article(found.kind)}"
    env.refuse("TS0133", message, node, f'write `{kind.kind}("its name")`')


def subject(node: nodes.Expr) -> Named | None:
    """`parameter("head.weight")`, of any kind; None for other expressions."""
    match node:
        case nodes.Call(
            function=nodes.Name(text=kind),
            arguments=(nodes.Argument(name=None, value=nodes.String(value=name)),),
        ):
            return Named(kind, name)
    return None


# --- tensors ------------------------------------------------------------------------------------


def _tensor(node: nodes.Expr, of: Type, env: Environment) -> ScriptValue:
    match node:
        case nodes.Name(text="changed"):
            return Keyword("changed", node.span)
        case nodes.Call(function=nodes.Name(text="tensor"), arguments=arguments):
            return TensorValue(tuple(_features(arguments, env)), node.span)
    number = _number(node)
    if number is None:
        found = env.lower(node, types.FLOAT)
        value = known(found)
        if env.there(found) not in (types.INT, types.FLOAT) or not isinstance(value, int | float):
            absent = ", `absent`" if isinstance(of, Optional) else ""
            hint = f"write `tensor(norm: 2.0)`, a number, `changed`{absent}"
            env.refuse("TS0133", "this is a tensor", node, hint)
        number = float(value)
    return scalar(number, node)


def scalar(number: float, node: nodes.Expr) -> TensorValue:
    """The tensor that holds one number."""
    features: dict[str, ScriptValue] = {
        row.name: row.of_number(number) for row in rows.values() if row.of_number is not None
    }
    features["shape"] = ListValue(())
    return TensorValue(tuple(features.items()), node.span)


def _features(
    arguments: tuple[nodes.Argument, ...], env: Environment
) -> list[tuple[str, ScriptValue]]:
    found: dict[str, ScriptValue] = {}
    for argument in arguments:
        if argument.name is None:
            env.refuse("TS0127", "a tensor is given by its features", argument, "write `norm: 2.0`")
        name = argument.name.text
        if name not in TENSOR_FEATURES:
            hint = did_you_mean(name, TENSOR_FEATURES)
            env.refuse("TS0121", f"a tensor has no feature `{name}`", argument.name, hint)
        if name in found:
            env.refuse("TS0104", f"`{name}:` is given twice", argument)
        found[name] = script_value(argument.value, TENSOR_FEATURES[name], env)
    return list(found.items())
