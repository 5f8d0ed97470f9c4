"""`within`: tolerances made of numbers and of multiples of round-off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from tspec.diagnostics import did_you_mean
from tspec.resolve.names.reporter import Reporter
from tspec.resolve.names.type_names import DTYPES
from tspec.resolve.program.trials import (
    Absolute,
    Combined,
    Noise,
    Number,
    Relative,
    Tolerance,
    Ulp,
)
from tspec.resolve.trials.runs import listed
from tspec.syntax import nodes

_TOLERANCES: Mapping[str, tuple[int, tuple[str, ...]]] = {
    "noise": (0, ("perturb", "samples", "floor")),
    "ulp": (1, ()),
    "rtol": (1, ()),
    "atol": (1, ()),
}
"""The number of values that each tolerance takes, and its named arguments."""


def lower_tolerance(node: nodes.Expr, reporter: Reporter) -> Tolerance | None:
    """Type a tolerance. None if it has errors, which are reported."""
    match node:
        case nodes.Integer() | nodes.Float() | nodes.Percentage():
            return Number(float(node.value))
        case nodes.Arithmetic(left=left, operator=operator, right=right) if operator != "-":
            first, second = lower_tolerance(left, reporter), lower_tolerance(right, reporter)
            if first is None or second is None:
                return None
            return Combined(_OPERATORS[operator], first, second)
        case nodes.Call(function=function):
            name = nodes.dotted_text(function) or ""
            if name in _TOLERANCES:
                return _named(node, name, reporter)
            hint = did_you_mean(name, _TOLERANCES) or f"there are {listed(_TOLERANCES)}"
            reporter.report("TS0123", "there is no such tolerance", function, hint)
            return None
    message = "a tolerance is made of numbers and of what round-off amounts to"
    reporter.report("TS0188", message, node, f"there are {listed(_TOLERANCES)}")
    return None


_OPERATORS: Mapping[str, Literal["+", "*", "/"]] = {"+": "+", "*": "*", "/": "/"}


def _named(node: nodes.Call, name: str, reporter: Reporter) -> Tolerance | None:
    count, names = _TOLERANCES[name]
    values = [each.value for each in node.arguments if each.name is None]
    if len(values) != count:
        takes = f"{count} value" if count == 1 else f"{count} values"
        reporter.report("TS0127", f"`{name}` takes {takes}, not {len(values)}", node)
    if name == "ulp":
        return _ulp(values, reporter)
    found = [lower_tolerance(value, reporter) for value in values]
    if name == "noise":
        return _noise(node, names, reporter)
    if len(found) != 1 or found[0] is None:
        return None
    return Relative(found[0]) if name == "rtol" else Absolute(found[0])


def _ulp(values: list[nodes.Expr], reporter: Reporter) -> Ulp | None:
    found = None
    for value in values:
        if isinstance(value, nodes.Name) and value.text in DTYPES:
            found = Ulp(value.text)
            continue
        shown = reporter.scope.source.slice(value.span)
        hint = did_you_mean(shown, DTYPES)
        reporter.report("TS0135", f"`{shown}` is no dtype", value, hint)
    return found


def _noise(node: nodes.Call, names: tuple[str, ...], reporter: Reporter) -> Noise:
    found: dict[str, Tolerance] = {}
    for argument in node.arguments:
        if argument.name is None:
            continue
        name = argument.name.text
        if name not in names:
            message = f"`noise` has no argument `{name}:`"
            reporter.report("TS0124", message, argument.name, did_you_mean(name, names))
            continue
        value = lower_tolerance(argument.value, reporter)
        if value is not None:
            found[name] = value
    samples = found.get("samples")
    count = int(samples.value) if isinstance(samples, Number) else 0
    if samples is not None and (count < 1 or samples != Number(count)):
        said = next(each for each in node.arguments if each.name and each.name.text == "samples")
        reporter.report("TS0130", "`samples:` takes an int, from 1 on", said.value)
    return Noise(found.get("perturb"), count or None, found.get("floor"))
