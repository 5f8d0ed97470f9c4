"""Folds of many values to one: over a list, over the ranks of a group, over time."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, NoReturn

from tspec.builtin.folds import FOLDS
from tspec.resolve.expressions.arguments import Arguments, duration, take
from tspec.resolve.expressions.environment import Environment
from tspec.resolve.expressions.operators import digest_of, named
from tspec.resolve.expressions.tensors import RESULTS, feature, is_tensor
from tspec.resolve.program import rules, types
from tspec.resolve.program.types import ListOf, SetOf, Type, item_of, plain
from tspec.syntax import nodes


def fold(node: nodes.Call, name: str, env: Environment) -> rules.Expr:
    """One of FOLDS; of a tensor `min`, `max`, `sum`, `mean`, `std` are features. Raises Refused."""
    options = ("over", "dim") if name == "std" else ("over",)
    arguments = take(node, env, 1, options)
    if "over" in arguments.named:
        return _over_time(node, name, arguments, env)
    value, of = _argument(arguments, env)
    if name in RESULTS and is_tensor(of):
        return feature(name, value, arguments, node, env)
    if "dim" in arguments.named:
        env.refuse("TS0130", f"`dim:` is a tensor's, and this is {named(of)}", arguments.values[0])
    if _is_list(name, value, of, env):
        inner = item_of(of)
        assert inner is not None
        return _fold(node, name, value, (plain(inner), "list"), env)
    if not env.across:
        _refuse_single(node, name, of, arguments, env)
    if env.folded:
        message = f"`{name}` folds over the group, inside of another fold over it"
        env.refuse("TS0152", message, node, "one value for each rank is folded once")
    return _fold(node, name, digest_of(value), (of, "group"), env)


def _argument(arguments: Arguments, env: Environment) -> tuple[rules.Expr, Type]:
    """The argument of a fold and its type. Under `across` it is read on each rank."""
    value = env.lower(arguments.values[0])
    of = env.there(value)
    single = item_of(of) is None or of == types.SHAPE or isinstance(value, rules.ListDisplay)
    if env.across and single and not env.folded:
        # Read again as a rank's own value: a fold over the group has no place in it.
        value = replace(env, folded=True).lower(arguments.values[0])
    return value, of


def _is_list(name: str, value: rules.Expr, of: Type, env: Environment) -> bool:
    """True if a fold is over the elements of its argument, not over the values of the ranks.

    Under `across`, a list display and a shape are one value of each rank for folds that compare
    values.
    """
    if item_of(of) is None:
        return False
    if env.across and name in ("same", "distinct"):
        return not (of == types.SHAPE or isinstance(value, rules.ListDisplay))
    return True


def _over_time(node: nodes.Call, name: str, arguments: Arguments, env: Environment) -> rules.Expr:
    span = duration(arguments.named["over"], env, "over:")
    if env.clause in ("for", "across", "window"):
        env.refuse("TS0150", "`over:` belongs in `when` or `expect`", node)
    if "dim" in arguments.named:
        env.refuse("TS0124", "`dim:` and `over:` do not go together", node)
    value = env.lower(arguments.values[0])
    of = env.there(value)
    if FOLDS[name].takes == "numbers" and is_tensor(of):
        hint = f"fold a feature of it: `{name}(norm(...), over: ...)`"
        env.refuse("TS0130", f"over time `{name}` takes numbers, not {named(of)}", node, hint)
    if item_of(of) is not None and name not in ("same", "distinct"):
        hint = f"fold the list first: `{name}({name}(...), over: ...)`"
        env.refuse("TS0130", f"over time `{name}` takes one value, not {named(of)}", node, hint)
    return _fold(node, name, digest_of(value), (of, "time"), env, span)


def _fold(
    node: nodes.Call,
    name: str,
    value: rules.Expr,
    what: tuple[Type, Literal["list", "group", "time"]],
    env: Environment,
    over: rules.Duration | None = None,
) -> rules.Fold:
    of, scope = what
    _check_item(node, name, of, env)
    return rules.Fold(_result(name, of), node.span, name, value, scope, over)


def _check_item(node: nodes.Call, name: str, of: Type, env: Environment) -> None:
    inside = node.arguments[0].value
    if FOLDS[name].takes == "numbers" and of not in (types.INT, types.FLOAT, types.SCALAR):
        env.refuse("TS0130", f"`{name}` takes numbers, not {named(of)}", inside)
    if FOLDS[name].takes == "conditions" and of not in (types.BOOL, types.SCALAR):
        hint = "to count what there is, write `count(...) > 0`"
        env.refuse("TS0130", f"`{name}` takes conditions, not {named(of)}", inside, hint)


def _result(name: str, of: Type) -> Type:
    match FOLDS[name].result:
        case "bool":
            return types.BOOL
        case "int":
            return types.INT
        case "number" if of == types.INT:
            return types.INT
    return types.FLOAT


def _refuse_single(
    node: nodes.Call, name: str, of: Type, arguments: Arguments, env: Environment
) -> NoReturn:
    """Refuse to fold one value: there is no list, no group and no `over`."""
    if isinstance(of, ListOf | SetOf):
        raise AssertionError(of)
    shown = env.scope.source.slice(arguments.values[0].span)
    hint = f"over ranks add `across`, over time write `{name}({shown}, over: 20 steps)`"
    message = f"`{name}` folds many values, and this is one {of}"
    env.refuse("TS0151", message, node, hint)
