"""`layout`: every name in it is known, every cut comes out even, and no tensor is cut in two ways."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import get_args

from tspec.diagnostics import Related, did_you_mean
from tspec.resolve.expressions.over_settings import setting_names, strays, typed_condition
from tspec.resolve.findings import Findings
from tspec.resolve.names.reporter import Reporter
from tspec.resolve.names.scope import Scope
from tspec.resolve.program import types
from tspec.resolve.program.rules import Expr
from tspec.resolve.program.sharding import (
    Dimension,
    DimsDeclaration,
    Flat,
    LayoutDeclaration,
    MeshDeclaration,
    Modules,
    Placement,
    Product,
    Shape,
    Split,
    Stage,
    Sum,
    TensorKind,
    Term,
    Tie,
    fits,
)
from tspec.syntax import nodes

OF_THE_INPUT = frozenset({"seq", "batch"})
"""Sizes that come with the input of a step, and stand in no `dims`."""

ORDERS = {"zigzag": 2}
"""Orders in which a dimension is cut, and the number of chunks that each rank gets."""

_RANGE = re.compile(r"(.*?)(\d+)\.\.(\d+)(.*)")


class _Layout:
    """One layout while it is lowered: its mesh, its sizes, and the flags that its conditions read."""

    def __init__(
        self, mesh: MeshDeclaration, dims: DimsDeclaration | None, reporter: Reporter
    ) -> None:
        self.axes = mesh.all_axes
        self.mesh = mesh
        self.sizes = dict(dims.sizes) if dims else {}
        self.reporter = reporter
        self.flags: dict[str, None] = {}


def lower_layout(
    node: nodes.Layout,
    known: tuple[dict[str, MeshDeclaration], dict[str, DimsDeclaration]],
    scope: Scope,
    findings: Findings,
) -> LayoutDeclaration | None:
    """Type a layout. None if it has errors, which are reported.

    Its sizes are in the `dims` of the layout's name, or else of the mesh's.
    """
    meshes, all_dims = known
    reporter = Reporter(scope, findings)
    mesh = meshes.get(node.mesh.text)
    if mesh is None:
        if node.mesh.text not in scope.unit.broken:
            hint = did_you_mean(node.mesh.text, meshes)
            reporter.report("TS0175", f"there is no mesh `{node.mesh.text}`", node.mesh, hint)
        return None
    dims = all_dims.get(node.name.text) or all_dims.get(mesh.name)
    for name in mesh.all_axes:
        if dims is not None and name in dict(dims.sizes):
            message = f"`{name}` is an axis of mesh `{mesh.name}` and a size of dims `{dims.name}`"
            reporter.report("TS0104", message, node.name, "give the size another name")
    layout = _Layout(mesh, dims, reporter)
    places = [each for each in node.clauses if isinstance(each, nodes.Place)]
    ties = [each for each in node.clauses if isinstance(each, nodes.Tied)]
    stages = [each for each in node.clauses if isinstance(each, nodes.Stage)]
    placements = tuple(_placement(place, layout) for place in places)
    _check_doubles(places, reporter)
    for tie in ties:
        _check_tied(tie, places, reporter)
    _check_stages(stages, layout)
    for axis in node.replicated:
        _check_axis(axis, layout)
    if reporter.failed:
        return None
    return LayoutDeclaration(
        node.name.text,
        scope.unit.name,
        mesh,
        dims,
        tuple(layout.flags),
        placements,
        tuple(Tie(tie.left.value, tie.right.value) for tie in ties),
        tuple(_stage(stage) for stage in stages),
        tuple(axis.text for axis in node.replicated),
        scope.source,
        node.name.span,
    )


# --- placements ---------------------------------------------------------------------------------


def _placement(place: nodes.Place, layout: _Layout) -> Placement:
    shape = _shape(place.shape, layout)
    _check_cuts(place, layout)
    when = None if place.when is None else _condition(place.when.condition, layout)
    partial = tuple(axis.text for axis in place.partial)
    same = tuple(axis.text for axis in place.replicated)
    kind, pattern = _KINDS[place.kind.text], place.pattern
    return Placement(kind, pattern.value, shape, partial, same, when, place.span, pattern.span)


_KINDS: Mapping[str, TensorKind] = {kind: kind for kind in get_args(TensorKind)}


def _check_cuts(place: nodes.Place, layout: _Layout) -> None:
    """Each axis is one of the mesh and cuts the tensor once; over a cut nothing is added up."""
    used: list[str] = []
    sums = (each for each in place.shape.walk() if isinstance(each, nodes.SizeSum))
    again = [split for each in sums for part in each.terms[1:] for split in _splits(part)]
    for split in _splits(place.shape):
        _check_axis(split.axis, layout)
        if not any(split is each for each in again):
            if split.axis.text in used:
                message = f"the tensor is cut over `{split.axis.text}` twice"
                layout.reporter.report("TS0178", message, split.axis)
            used.append(split.axis.text)
        if split.order is not None and isinstance(place.shape, nodes.Flat):
            message = "what is flattened is cut in order"
            layout.reporter.report("TS0178", message, split.order)
        elif split.order is not None and split.order.text not in ORDERS:
            hint = did_you_mean(split.order.text, ORDERS) or "there is `zigzag`"
            message = f"there is no order `{split.order.text}`"
            layout.reporter.report("TS0178", message, split.order, hint)
    for axis in place.partial:
        _check_axis(axis, layout)
        if axis.text in used:
            message = f"over `{axis.text}` the tensor is cut, so that there is nothing to add up"
            layout.reporter.report("TS0178", message, axis)
        used.append(axis.text)
    for axis in place.replicated:
        _check_axis(axis, layout)
        if axis.text in used:
            message = f"over `{axis.text}` the tensor is cut or added up, and so not the same"
            layout.reporter.report("TS0178", message, axis)


def _splits(node: nodes.Node) -> Iterator[nodes.Split]:
    return (each for each in node.walk() if isinstance(each, nodes.Split))


def _check_axis(axis: nodes.Word, layout: _Layout) -> None:
    if axis.text not in layout.axes:
        hint = did_you_mean(axis.text, layout.axes) or f"it has {_listed(layout.axes)}"
        message = f"the mesh `{layout.mesh.name}` has no axis `{axis.text}`"
        layout.reporter.report("TS0125", message, axis, hint)


def _shape(node: nodes.Shape | nodes.Flat, layout: _Layout) -> Shape | Flat:
    if isinstance(node, nodes.Flat):
        for each in node.padding:
            _term(each, layout, axes=True)
        return Flat(_cuts(node.splits), tuple(map(_named, node.padding)))
    return Shape(tuple(_dimension(each, layout)[0] for each in node.dimensions))


def _cuts(found: Sequence[nodes.Split]) -> tuple[Split, ...]:
    return tuple(
        Split(each.axis.text, "zigzag" if each.order is not None else "contiguous")
        for each in found
    )


def _dimension(node: nodes.Dimension, layout: _Layout) -> tuple[Dimension, int | None]:
    """A dimension, and its size if it is known. A size that is not divisible is reported."""
    value, size = _size(node.size, layout)
    factors = [_term(each, layout, axes=True) for each in node.padding]
    if node.padding and any(_splits(node.size)):
        message = "sizes of which one is cut cannot be padded together"
        layout.reporter.report("TS0178", message, node)
    if size is not None and factors and all(factors):
        unit = prod(each for each in factors if each)
        size = -(-size // unit) * unit
    parts = 1
    for split in node.splits:
        pieces = ORDERS.get(split.order.text, 1) if split.order else 1
        parts *= layout.axes.get(split.axis.text, 1) * pieces
    if size is not None and size % parts:
        shown = layout.reporter.scope.source.slice(node.span)
        message = f"`{shown}`: {size} is not divisible into {parts} parts"
        hint = "say to what it is padded: `padded to 128 * tp`"
        layout.reporter.report("TS0176", message, node, hint)
    padding = tuple(_named(each) for each in node.padding)
    return Dimension(value, padding, _cuts(node.splits)), size


def _size(
    node: nodes.SizeName | nodes.SizeNumber | nodes.SizeSum | nodes.Product, layout: _Layout
) -> tuple[Term | Sum | Product, int | None]:
    if not isinstance(node, nodes.SizeSum):
        return _part(node, layout)
    _check_parts(node, layout)
    found = [_part(each, layout) for each in node.terms]
    sizes = [size for _, size in found]
    whole = None if None in sizes else sum(each for each in sizes if each)
    return Sum(tuple(part for part, _ in found)), whole


def _part(
    node: nodes.SizeName | nodes.SizeNumber | nodes.Product, layout: _Layout
) -> tuple[Term | Product, int | None]:
    if not isinstance(node, nodes.Product):
        return _named(node), _term(node, layout)
    for padded in (each for each in node.dimensions[1:] if each.padding):
        message = "only the first of several sizes can be padded: the others lie within it"
        layout.reporter.report("TS0178", message, padded)
    inside = [_dimension(each, layout) for each in node.dimensions]
    sizes = [each for _, each in inside]
    whole = None if None in sizes else prod(each for each in sizes if each)
    return Product(tuple(each for each, _ in inside)), whole


def _check_parts(node: nodes.SizeSum, layout: _Layout) -> None:
    """Consecutive sections are cut over the same axes, and not padded."""
    axes = [{split.axis.text for split in _splits(each)} for each in node.terms]
    for part, cut in zip(node.terms, axes, strict=True):
        if cut != axes[0]:
            said = f"over {', '.join(sorted(axes[0]))}" if axes[0] else "over no axis"
            message = (
                f"consecutive sections are cut over the same axes, and the first is cut {said}"
            )
            layout.reporter.report("TS0178", message, part)
        for padded in part.walk():
            if isinstance(padded, nodes.Dimension) and padded.padding:
                message = "consecutive sections are not padded: padding stands at the end"
                layout.reporter.report("TS0178", message, padded)


def _named(node: nodes.SizeName | nodes.SizeNumber) -> Term:
    return node.text if isinstance(node, nodes.SizeName) else node.value


def _term(
    node: nodes.SizeName | nodes.SizeNumber, layout: _Layout, *, axes: bool = False
) -> int | None:
    if isinstance(node, nodes.SizeNumber):
        if node.value < 1:
            layout.reporter.report("TS0173", "a size is a whole number from 1 on", node)
        return node.value or None
    if axes and node.text in layout.axes:
        return layout.axes[node.text]
    if node.text in layout.sizes:
        return layout.sizes[node.text]
    if node.text not in OF_THE_INPUT:
        near = did_you_mean(node.text, [*layout.sizes, *OF_THE_INPUT])
        hint = near or f"add it to `dims {layout.mesh.name}`"
        layout.reporter.report("TS0174", f"there is no size `{node.text}`", node, hint)
    return None


def _condition(node: nodes.Expr, layout: _Layout) -> Expr | None:
    """A condition over flags, which need no declaration, and the sizes of axes."""
    found = list(strays(node))
    found += [each for each in setting_names(node) if isinstance(each, nodes.Attribute)]
    for each in found:
        message = "a place depends on settings and sizes of axes only"
        layout.reporter.report("TS0177", message, each)
    if found:
        return None
    names = [each.text for each in setting_names(node) if isinstance(each, nodes.Name)]
    flags = dict.fromkeys(name for name in names if name not in layout.axes)
    layout.flags.update(flags)
    settings = {**dict.fromkeys(layout.axes, types.INT), **dict.fromkeys(flags, types.BOOL)}
    return typed_condition(node, settings, layout.reporter)


def _check_doubles(places: list[nodes.Place], reporter: Reporter) -> None:
    seen: dict[tuple[str, str, nodes.Expr | None], nodes.Place] = {}
    for place in places:
        condition = place.when.condition if place.when else None
        key = (place.kind.text, place.pattern.value, condition)
        first = seen.setdefault(key, place)
        if first is not place:
            there = Related(first.span, "the first one")
            message = f'`{place.kind.text} "{place.pattern.value}"` is cut in two ways'
            hint = "say when: each with its own `when`"
            reporter.report("TS0179", message, place.pattern, hint, (there,))


def _check_tied(node: nodes.Tied, places: list[nodes.Place], reporter: Reporter) -> None:
    if node.left.value == node.right.value:
        reporter.report("TS0179", "a tensor is tied to itself", node)
    patterns = [each.pattern.value for each in places]
    names = (node.left.value, node.right.value)
    if not any(fits(pattern, name) for pattern in patterns for name in names):
        hint = did_you_mean(names[0], patterns) or did_you_mean(names[1], patterns)
        reporter.report("TS0179", "neither of the two has a place", node, hint)


# --- stages -------------------------------------------------------------------------------------


def _stage(node: nodes.Stage) -> Stage:
    return Stage(node.number, node.chunk or 0, tuple(_modules(m.value) for m in node.modules))


def _modules(text: str) -> Modules:
    match = _RANGE.fullmatch(text)
    if match is None:
        return Modules(text)
    return Modules(match[1], (int(match[2]), int(match[3])), match[4])


def _check_stages(stages: list[nodes.Stage], layout: _Layout) -> None:
    """Stages are numbered from 0, below the size of `pp`; their layers follow on one another."""
    reporter = layout.reporter
    seen: dict[tuple[int, int | None], nodes.Stage] = {}
    size = layout.axes.get("pp")
    for stage in stages:
        key = (stage.number, stage.chunk)
        if key in seen:
            there = Related(seen[key].span, "the first one")
            message = f"stage {stage.number} stands here twice"
            reporter.report("TS0181", message, stage, "interleaved stages have chunks", (there,))
        seen[key] = stage
        if size is not None and stage.number >= size:
            message = f"stage {stage.number} is beyond the {size} stages of `pp`"
            reporter.report("TS0181", message, stage)
    numbers = {stage.number for stage in stages}
    if stages and size is not None and len(numbers) < size and max(numbers) < size:
        missing = min(set(range(size)) - numbers)
        reporter.report(
            "TS0181", f"`pp` has {size} stages, and stage {missing} is missing", stages[-1]
        )
    _check_ranges(stages, reporter)


def _check_ranges(stages: list[nodes.Stage], reporter: Reporter) -> None:
    ranges: dict[tuple[str, str], list[tuple[int, int, nodes.String]]] = {}
    for stage in stages:
        for module in stage.modules:
            match = _RANGE.fullmatch(module.value)
            if match is None:
                ranges.setdefault((module.value, ""), []).append((0, 0, module))
                continue
            first, last = int(match[2]), int(match[3])
            if last < first:
                reporter.report("TS0182", f"{first}..{last} holds nothing", module)
            else:
                ranges.setdefault((match[1], match[4]), []).append((first, last, module))
    for (prefix, _), found in ranges.items():
        found.sort(key=lambda each: each[:2])
        for one, two in pairwise(found):
            there = Related(one[2].span, "the other one")
            if two[0] <= one[1]:
                shown = f"`{prefix}{two[0]}`" if one[1] or two[1] else f"`{prefix}`"
                reporter.report("TS0182", f"{shown} is on two stages", two[2], None, (there,))
            elif two[0] > one[1] + 1:
                message = f"`{prefix}{one[1] + 1}` is on no stage"
                reporter.report("TS0182", message, two[2], None, (there,))


def _listed(names: dict[str, int]) -> str:
    return ", ".join(f"`{name}`" for name in names)
