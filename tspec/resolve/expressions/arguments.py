"""The arguments of a function: their number and their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import get_args

from tspec.diagnostics import did_you_mean
from tspec.resolve.expressions.environment import Environment
from tspec.resolve.program import rules
from tspec.syntax import nodes


@dataclass(frozen=True, slots=True)
class Arguments:
    """Positional arguments and named arguments."""

    values: tuple[nodes.Expr, ...]
    named: Mapping[str, nodes.Expr]


def take(node: nodes.Call, env: Environment, count: int, names: tuple[str, ...] = ()) -> Arguments:
    """The arguments of a function that takes this many values and these names. Raises Refused."""
    function = nodes.dotted_text(node.function) or ""
    values = []
    named: dict[str, nodes.Expr] = {}
    for argument in node.arguments:
        if argument.name is None:
            values.append(argument.value)
            continue
        name = argument.name.text
        if name not in names:
            hint = did_you_mean(name, names)
            if hint is None:
                allowed = ", ".join(f"`{each}:`" for each in names)
                hint = f"it takes {allowed}" if names else "it takes none"
            env.refuse("TS0124", f"`{function}` has no argument `{name}:`", argument.name, hint)
        if name in named:
            env.refuse("TS0104", f"`{name}:` is given twice", argument.name)
        named[name] = argument.value
    if len(values) != count:
        takes = "1 value" if count == 1 else f"{count} values"
        env.refuse("TS0127", f"`{function}` takes {takes}, not {len(values)}", node)
    return Arguments(tuple(values), named)


def duration(node: nodes.Expr, env: Environment, word: str) -> rules.Duration:
    """`20 steps` as a duration in a unit that a run counts. Raises Refused."""
    if not isinstance(node, nodes.Quantity):
        hint = f"write `{word} 20 steps`"
        env.refuse(
            "TS0138", f"`{word}` takes a number of steps, microbatches or epochs", node, hint
        )
    for unit in get_args(rules.UnitName):
        if unit == node.unit:
            if not isinstance(node.amount, int) or node.amount < 1:
                env.refuse("TS0139", f"`{word}` takes a whole number from 1 on", node)
            return rules.Duration(node.amount, unit)
    hint = "ranks count steps alike, and no two clocks agree"
    env.refuse(
        "TS0138", f"`{word}` takes steps, microbatches or epochs, not {node.unit}s", node, hint
    )
