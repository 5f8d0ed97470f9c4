"""Typing of expressions: each kind of syntax node to its typed form."""

from __future__ import annotations

from tspec.diagnostics import with_article
from tspec.resolve.expressions.environment import Environment
from tspec.resolve.expressions.fields import field_of
from tspec.resolve.expressions.functions import lower_call
from tspec.resolve.expressions.operators import lower_arithmetic, lower_comparison, lower_logic
from tspec.resolve.expressions.paths import lower_path, path_of
from tspec.resolve.program import rules, types
from tspec.resolve.program.types import ListOf, MapOf, Optional, SetOf, Type, item_of, plain
from tspec.syntax import nodes


def lower(node: nodes.Expr, env: Environment, want: Type | None = None) -> rules.Expr:
    """Type an expression; `want` is the type of the value that it is compared with.

    Raises Refused if it has no type; the reason is reported.
    """
    match node:
        case nodes.Name():
            path = path_of(node)
            assert path is not None
            return lower_path(path, env, want)
        case nodes.Attribute(value=value, name=name):
            path = path_of(node)
            if path is not None:
                return lower_path(path, env, want)
            return field_of(env.lower(value), name.text, name.span, env)
        case nodes.Call():
            return lower_call(node, env)
        case nodes.Index():
            return _index(node, env)
        case nodes.List(items=items) | nodes.Set(items=items):
            return _display(node, items, env, want)
        case nodes.Arithmetic() | nodes.Negative():
            return lower_arithmetic(node, env)
        case nodes.Comparison():
            return lower_comparison(node, env)
        case nodes.Not() | nodes.And() | nodes.Or() | nodes.Implies():
            return lower_logic(node, env)
    return _literal(node, env, want)


def _literal(node: nodes.Expr, env: Environment, want: Type | None) -> rules.Expr:
    match node:
        case nodes.Integer(value=value):
            return rules.Constant(types.INT, node.span, value)
        case nodes.Float(value=number):
            return rules.Constant(types.FLOAT, node.span, number)
        case nodes.Percentage():
            return rules.Constant(types.FLOAT, node.span, node.value)
        case nodes.Boolean(value=truth):
            return rules.Constant(types.BOOL, node.span, truth)
        case nodes.String(value=text):
            of = plain(want) if want else None
            # A device is compared as it is written, with its index: "cuda:0".
            return rules.Constant(
                types.DEVICE if of == types.DEVICE else types.STRING, node.span, text
            )
        case nodes.Quantity(amount=amount, unit=unit):
            hint = f"write `{amount}`; a unit belongs after `every`, `over:` and `of`"
            env.refuse("TS0138", f"a number of {unit}s is no value", node, hint)
    env.refuse("TS0127", "this is no value", node)


def _display(
    node: nodes.Expr, items: tuple[nodes.Expr, ...], env: Environment, want: Type | None
) -> rules.Expr:
    """`[a, b]`: a list of their common type, or else of scalars."""
    inner = item_of(want) if want else None
    values = env.lower_all(items, inner)
    kinds = [env.there(value) for value in values]
    if not kinds:
        of: Type = inner or types.SCALAR
    elif all(kind == kinds[0] for kind in kinds):
        of = kinds[0]
    elif all(kind in (types.INT, types.FLOAT) for kind in kinds):
        of = types.FLOAT
    else:
        of = types.SCALAR
    listed: Type = SetOf(of) if isinstance(node, nodes.Set) else ListOf(of)
    return rules.ListDisplay(listed, node.span, values)


def _index(node: nodes.Index, env: Environment) -> rules.Expr:
    base = env.lower(node.value)
    of = env.there(base)
    if isinstance(of, MapOf):
        key = env.lower(node.index, of.key)
        if env.there(key) != plain(of.key):
            message = f"the keys of this map are {of.key}, and this is {key.type}"
            env.refuse("TS0137", message, node.index)
        return rules.Index(Optional(plain(of.value)), node.span, base, key)
    item = item_of(of)
    if item is None or isinstance(of, SetOf):
        hint = "a set has no order" if isinstance(of, SetOf) else None
        env.refuse("TS0137", f"{with_article(of)} has no elements by number", node.value, hint)
    index = env.lower(node.index)
    if env.there(index) != types.INT:
        env.refuse("TS0137", f"an element's place is an int, and this is {index.type}", node.index)
    return rules.Index(item, node.span, base, index)
