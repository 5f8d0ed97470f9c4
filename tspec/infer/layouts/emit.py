"""The draft of a layout as a spec file: mesh, sizes, places, stages, and tensors whose cut was not
found.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from tspec.infer.layouts.fit import placement
from tspec.infer.layouts.shards import Found, Remark, ShardIndices, Unknown
from tspec.layout.notation import shape_notation
from tspec.layout.ranks import coordinates
from tspec.layout.text import of_all_layers
from tspec.resolve.program.sharding import Axes, Dimension, Placement, Product, Shape, Sum, Term
from tspec.source import Source
from tspec.syntax.format import format_text

SEVERAL_STAGES = (
    "on stage {first}, and under the same name on stage {others}: a copy, whose own name `tied` is to "
    "say, or another tensor if each stage counts its modules from 0 (give them the names that the "
    "whole model has)"
)
_LAYER = re.compile(r"(.*?\.\d+)\.")


@dataclass(frozen=True, slots=True)
class LayoutDraft:
    """The text of a layout, the number of its places and of their tensors, what it leaves out, and
    what it assumes.
    """

    text: str
    places: int
    tensors: int
    unknown: tuple[Remark, ...]
    notes: tuple[Remark, ...]


def draft(found: Found, name: str, module: str) -> LayoutDraft:
    """Draft the layout of the tensors that were found."""
    placed: dict[str, Placement] = {}
    unknown: list[Unknown] = []
    for each in found.tensors:
        fitted = each if isinstance(each, Unknown) else placement(each, found.axes_of(each))
        if isinstance(fitted, Unknown):
            unknown.append(fitted)
        else:
            placed[fitted.pattern] = fitted
    pieces = [
        each for each in found.tensors if isinstance(each, ShardIndices) and each.name in placed
    ]
    places = _by_pattern(placed)
    parts = (size for place in places for size in _parts(place))
    known = (*(size for each in pieces for size in each.full), *parts)
    sizes = {size: f"size_{size}" for size in known if size > 1}
    notes = remarks(_assumed(pieces, found))
    left_out = remarks((each.name, each.why) for each in unknown)
    text = "\n".join(
        [
            "edition 2026",
            "",
            *_documentation(left_out, notes),
            f"module {module}",
            "",
            *_mesh(name, found.axes, found.expert_axes),
            "",
            *_dims(name, sizes),
            "",
            *(_layout(name, places, sizes, found, pieces) if places else ()),
            "",
        ]
    )
    text = format_text(Source(f"{module}.tspec", text)) if places else text
    return LayoutDraft(text, len(places), len(placed), left_out, notes)


def _parts(place: Placement) -> Iterator[int]:
    """The sizes of consecutive sections."""
    assert isinstance(place.shape, Shape)
    sums = (each.size for each in place.shape.dimensions if isinstance(each.size, Sum))
    products = (part for each in sums for part in each.terms if isinstance(part, Product))
    return (
        each.size for part in products for each in part.dimensions if isinstance(each.size, int)
    )


def _assumed(pieces: Sequence[ShardIndices], found: Found) -> Iterator[tuple[str, str]]:
    """Names of tensors, and what the draft takes for granted of them."""
    for each in pieces:
        if each.note:
            yield each.name, each.note
        first, *others = _stages_of(each, found)
        if others and not each.copies:
            of = ", ".join(map(str, others))
            yield each.name, SEVERAL_STAGES.format(first=first, others=of)


def _documentation(unknown: Sequence[Remark], notes: Sequence[Remark]) -> Iterator[str]:
    yield "/// A draft: read it, rename the sizes, and say how inputs and outputs are cut."
    if notes:
        yield "///"
        yield from (f"/// Assumed: {each.text()}." for each in notes)
    if unknown:
        yield "///"
        yield from (f"/// Not found: {each.text()}." for each in unknown)


def remarks(said: Iterable[tuple[str, str]]) -> tuple[Remark, ...]:
    """Group pairs of a tensor's name and a remark: one `Remark` for all tensors with the same remark.

    Tensors that differ only in the number of a layer or an expert get one name.
    """
    groups: dict[str, dict[str, list[str]]] = {}
    for name, what in said:
        groups.setdefault(what, {}).setdefault(of_all_layers(name), []).append(name)
    return tuple(
        Remark(
            tuple(alike[0] if len(alike) == 1 else pattern for pattern, alike in names.items()),
            what,
            sum(map(len, names.values())),
        )
        for what, names in groups.items()
    )


def _mesh(name: str, axes: Axes, expert_axes: Axes) -> Iterator[str]:
    yield f"mesh {name} {{"
    yield from _factorisation(axes)
    if expert_axes:
        yield "  regroup experts {"
        yield from _factorisation(expert_axes)
        yield "  }"
    yield "}"


def _factorisation(axes: Axes) -> Iterator[str]:
    yield f"  order: {', '.join(axis for axis, _ in axes)}"
    yield from (f"  {axis}: {size}" for axis, size in axes)


def _dims(name: str, sizes: Mapping[int, str]) -> Iterator[str]:
    yield f"dims {name} {{"
    yield from (f"  {sizes[size]}: {size}" for size in sorted(sizes))
    yield "}"


def _layout(
    name: str,
    places: Sequence[Placement],
    sizes: Mapping[int, str],
    found: Found,
    pieces: Sequence[ShardIndices],
) -> Iterator[str]:
    everywhere = [
        axis
        for axes in (found.axes, found.expert_axes)
        for axis, _ in axes
        if all(axis in each.replicated for each in places if _speaks_of(each, axes))
        and any(axis in each.replicated for each in places)
    ]
    said = f" replicated {', '.join(everywhere)}" if everywhere else ""
    yield f"layout {name} on {name}{said} {{"
    for each in places:
        assert isinstance(each.shape, Shape)
        shape = Shape(tuple(_named(dimension, sizes) for dimension in each.shape.dimensions))
        partial = f" partial {', '.join(each.partial)}" if each.partial else ""
        axes = [axis for axis in each.replicated if axis not in everywhere]
        same = f" replicated {', '.join(axes)}" if axes else ""
        yield f'  param "{each.pattern}": {shape_notation(shape)}{partial}{same}'
    ties = [(each.name, copy) for each in pieces for copy, _, _ in each.copies]
    if ties:
        yield ""
        yield from (f'  tied "{one}" == "{other}"' for one, other in ties)
    stages = _stages(pieces, found)
    if stages:
        yield ""
        yield from stages
    yield "}"


def _speaks_of(place: Placement, axes: Axes) -> bool:
    """True if a placement names an axis of this factorisation. Another factorisation shares only
    the axis of stages with it.
    """
    said = {*place.replicated, *place.cut_over, *place.partial}
    return any(axis in said for axis, _ in axes)


def _named(dimension: Dimension, sizes: Mapping[int, str]) -> Dimension:
    """A dimension with names for its sizes."""
    return replace(dimension, size=_named_size(dimension.size, sizes))


def _named_size(size: Term | Sum | Product, sizes: Mapping[int, str]) -> Term | Sum | Product:
    if isinstance(size, Sum):
        return Sum(tuple(_named_part(each, sizes) for each in size.terms))
    return _named_part(size, sizes)


def _named_part(size: Term | Product, sizes: Mapping[int, str]) -> Term | Product:
    if isinstance(size, Product):
        return Product(tuple(_named(each, sizes) for each in size.dimensions))
    return sizes.get(size, size) if isinstance(size, int) else size


def _by_pattern(placed: Mapping[str, Placement]) -> list[Placement]:
    """Layers that are cut alike as one place, in the order of their first tensors."""
    groups: dict[str, list[Placement]] = {}
    for name, place in placed.items():
        groups.setdefault(of_all_layers(name), []).append(place)
    found = []
    for pattern, places in groups.items():
        alike = len({replace(each, pattern=pattern) for each in places}) == 1
        if len(places) > 1 and alike and not pattern.startswith("*"):
            found.append(replace(places[0], pattern=pattern))
        else:
            found += places
    return found


def _stages(pieces: Sequence[ShardIndices], found: Found) -> list[str]:
    """One line for each stage, or for each chunk of interleaved stages, if the mesh has an axis `pp`."""
    if "pp" not in dict(found.axes):
        return []
    held: dict[str, tuple[int, int]] = {}
    for each in pieces:
        held[each.name] = each.chunk, _stages_of(each, found)[0]
    held |= {copy: (chunk, stage) for each in pieces for copy, stage, chunk in each.copies}
    modules: dict[tuple[int, int], dict[str, None]] = {}
    for name, place in held.items():
        modules.setdefault(place, {})[_module(name, held)] = None
    is_interleaved = any(chunk for chunk, _ in modules)
    return [
        f"  stage {stage}{f' chunk {chunk}' * is_interleaved}: {', '.join(_joined(list(of)))}"
        for (chunk, stage), of in sorted(modules.items())
    ]


def _stages_of(pieces: ShardIndices, found: Found) -> list[int]:
    """The stages whose ranks hold a tensor, ascending: one, but for tied tensors. 0 without an axis `pp`."""
    return sorted({coordinates(found.axes, rank).get("pp", 0) for rank in pieces.held})


def _module(name: str, held: Mapping[str, tuple[int, int]]) -> str:
    """The module to list for a stage: a layer, or else the outermost module without layers and without tensors of another stage."""
    layer = _LAYER.match(name)
    if layer:
        return layer[1]
    parts = name.split(".")
    for end in range(1, len(parts)):
        module = ".".join(parts[:end])
        inside = [each for each in held if each.startswith(f"{module}.")]
        if {held[each] for each in inside} == {held[name]} and not any(map(_LAYER.match, inside)):
            return module
    return name


def _joined(modules: Sequence[str]) -> Iterator[str]:
    """Consecutive layers, written as one: `"layers.0..3"`."""
    parts = [re.fullmatch(r"(.*\.)(\d+)", each) for each in modules]
    keyed = [
        (match[1], int(match[2]) - place) if match else (module, place)
        for place, (module, match) in enumerate(zip(modules, parts, strict=True))
    ]
    for _, group in groupby(zip(keyed, modules, strict=True), lambda each: each[0]):
        names = [module for _, module in group]
        last = names[-1].rpartition(".")[2]
        yield f'"{names[0]}..{last}"' if len(names) > 1 else f'"{names[0]}"'
