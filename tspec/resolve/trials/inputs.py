"""`input "Model[labels]" from below(vocab)`: inputs that are generated, and the range of their numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tspec.diagnostics import Related, did_you_mean
from tspec.resolve.names.reporter import Reporter
from tspec.resolve.program.sharding import LayoutDeclaration, fits
from tspec.resolve.program.trials import (
    Below,
    Generated,
    GeneratedInput,
    Recorded,
    Uniform,
)
from tspec.syntax import nodes

_NUMBERS: Mapping[str, int] = {"below": 1, "uniform": 2}
"""The number of values that each kind of numbers takes."""


def lower_inputs(
    clauses: Sequence[nodes.GeneratedInput],
    origin: Generated | Recorded | None,
    layout: LayoutDeclaration | None,
    reporter: Reporter,
) -> Iterator[GeneratedInput]:
    """Type the generated inputs. Those with errors are reported, and left out."""
    seen: dict[str, nodes.GeneratedInput] = {}
    for clause in clauses:
        name = clause.name.value
        if name in seen:
            there = Related(seen[name].name.span, "the first one")
            message = f'"{name}" is generated twice'
            reporter.report("TS0104", message, clause.name, None, (there,))
        seen[name] = clause
        if not isinstance(origin, Generated):
            hint = "write `run 1 step from generated(seed: 1)`"
            reporter.report("TS0180", "inputs are generated from a seed", clause.name, hint)
        if layout is not None and not _is_placed(name, layout):
            message = f'`{layout.name}` has no place for the input "{name}"'
            hint = f'its place says which part of it a rank has: `input "{name}": [batch / dp]`'
            reporter.report("TS0180", message, clause.name, hint)
        numbers = _numbers(clause.numbers, layout, reporter)
        if numbers is not None:
            yield GeneratedInput(name, numbers)


def _is_placed(name: str, layout: LayoutDeclaration) -> bool:
    return any(each.kind == "input" and fits(each.pattern, name) for each in layout.placements)


def _numbers(
    node: nodes.Expr, layout: LayoutDeclaration | None, reporter: Reporter
) -> Below | Uniform | None:
    name = (nodes.dotted_text(node.function) or "") if isinstance(node, nodes.Call) else ""
    if not isinstance(node, nodes.Call) or name not in _NUMBERS:
        message = "an input is generated from `below(n)` or `uniform(a, b)`"
        reporter.report("TS0180", message, node, did_you_mean(name, _NUMBERS))
        return None
    values = [each.value for each in node.arguments if each.name is None]
    if len(values) != _NUMBERS[name] or len(values) < len(node.arguments):
        takes = "one value" if name == "below" else "two values"
        reporter.report("TS0127", f"`{name}` takes {takes}", node)
        return None
    return _below(values[0], layout, reporter) if name == "below" else _uniform(values, reporter)


def _below(node: nodes.Expr, layout: LayoutDeclaration | None, reporter: Reporter) -> Below | None:
    sizes = dict(layout.dims.sizes) if layout is not None and layout.dims else {}
    limit = node.value if isinstance(node, nodes.Integer) else None
    if isinstance(node, nodes.Name):
        if layout is None:  # it has errors
            return None
        limit = sizes.get(node.text)
    if limit is not None and limit > 0:
        return Below(limit)
    hint = did_you_mean(node.text, sizes) if isinstance(node, nodes.Name) else None
    message = "`below` takes a whole number from 1 on, or a size of the layout's `dims`"
    reporter.report("TS0180", message, node, hint)
    return None


def _uniform(values: Sequence[nodes.Expr], reporter: Reporter) -> Uniform | None:
    found = [_number(each) for each in values]
    low, high = found
    if low is not None and high is not None and low < high:
        return Uniform(low, high)
    wrong = next((node for node, of in zip(values, found, strict=True) if of is None), values[1])
    message = "`uniform` takes two numbers, of which the second is larger"
    reporter.report("TS0180", message, wrong)
    return None


def _number(node: nodes.Expr) -> float | None:
    match node:
        case nodes.Integer() | nodes.Float():
            return float(node.value)
        case nodes.Negative(value=inner):
            value = _number(inner)
            return None if value is None else -value
    return None
