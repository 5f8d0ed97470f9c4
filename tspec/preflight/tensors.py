"""Checks the tensors of a rank against a layout: parameters, and inputs and outputs of modules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from tspec.layout.places import placement_of, tied_to
from tspec.layout.ranks import coordinates_of, factorisations
from tspec.layout.rows import groups
from tspec.layout.shards import UnevenShards, shard, stage_on
from tspec.layout.sizes import Sizes, UnknownSize
from tspec.layout.text import indices_text
from tspec.preflight.facts import Activation, RankFacts, TensorFacts
from tspec.preflight.held import Numbers, indices_of_blocks, indices_of_placements
from tspec.resolve.program.sharding import (
    Axes,
    LayoutDeclaration,
    Placement,
    Shape,
    TensorKind,
    fits,
)


def parameters(
    layout: LayoutDeclaration, sizes: Sizes, facts: RankFacts
) -> Iterator[tuple[str, str]]:
    """Parameters that are not as the layout says: the name of each, and what differs."""
    for each in facts.parameters:
        if placement_of(layout, "param", each.name, sizes.known) is None:
            said = "no place of the layout fits it"
        else:
            said = cut(layout, sizes, facts, "param", each)
        if said:
            yield each.name, said


def cut(
    layout: LayoutDeclaration,
    sizes: Sizes,
    facts: RankFacts,
    kind: TensorKind,
    tensor: TensorFacts,
) -> str:
    """A tensor's deviation from its place; empty if none. Raises UnknownSize."""
    try:
        piece = shard(layout, kind, tensor.name, facts.rank, sizes)
    except UnevenShards as uneven:
        return f"the layout cannot cut it: {uneven}"
    if piece is None:
        return "the layout has it on another stage"
    real = tuple(each.number - each.padding for each in piece.dimensions)
    keeps_no_padding = piece.flat is None and tensor.shape == real  # as `fully_shard`
    if tensor.shape != piece.shape and not keeps_no_padding:
        full = f" of {list(piece.full)}" if piece.shape != piece.full else ""
        return f"it has shape {list(tensor.shape)}, and {list(piece.shape)}{full} in the layout"
    if not _tells_all(layout, facts, tensor, piece.place):
        return ""
    padded = tuple(each.size for each in piece.dimensions)
    if tensor.full not in (piece.full, padded):
        return f"the full tensor is {list(tensor.full)}, and {list(piece.full)} in the layout"
    partial = tuple(each.axis for each in tensor.placements if each.how == "partial")
    if sorted(partial) != sorted(piece.partial):
        return f"it is a summand over {_axes_text(partial)}, and over {_axes_text(piece.partial)} in the layout"
    held = _held(tensor, facts, layout)
    if held is None:
        return ""
    for number, (mine, wanted) in enumerate(zip(held, piece.dimensions, strict=True)):
        indices = tuple(wanted)
        if len(mine) < len(indices):  # without the padding
            indices = tuple(each for each in indices if each < wanted.real)
        if mine != indices:
            return (
                f"it has other indices of dimension {number} than {indices_text(wanted)}: "
                f"{_first_difference(mine, indices)}"
            )
    return ""


def _tells_all(
    layout: LayoutDeclaration, facts: RankFacts, parameter: TensorFacts, place: Placement
) -> bool:
    """True if the framework knows all shardings of the parameter. A script may shard by hand, and
    torch may shard the result again.
    """
    names = axes_as_in(layout, facts)
    known = {names.get(each.axis, each.axis) for each in parameter.placements}
    over = {axis for axis in place.cut_over if layout.mesh.all_axes[axis] > 1}
    return bool(parameter.blocks) or bool(known and over <= known)


def _held(
    parameter: TensorFacts, facts: RankFacts, layout: LayoutDeclaration
) -> tuple[Numbers, ...] | None:
    """The indices that a rank holds as its framework says; None if it does not."""
    if parameter.blocks:
        return indices_of_blocks(parameter.blocks)
    sizes = dict(facts.axes)
    if not parameter.placements or any(each.axis not in sizes for each in parameter.placements):
        return None
    where, rest = {}, facts.rank
    for axis, size in facts.axes:
        rest, where[axis] = divmod(rest, size)
    return indices_of_placements(parameter, sizes, where)


def _first_difference(mine: Numbers, wanted: Numbers) -> str:
    pairs = zip(mine, wanted, strict=True)
    place, (one, other) = next((i, pair) for i, pair in enumerate(pairs) if pair[0] != pair[1])
    return f"at {place} stands {one} instead of {other}"


def lacking(layout: LayoutDeclaration, sizes: Sizes, facts: RankFacts) -> Iterator[tuple[str, str]]:
    """Places of parameters on the rank's stage that no parameter of the rank has.

    A module that is in no layer is left out by the model's configuration, such as the norms of
    queries and keys or a shared expert, and is no problem. Neither is a tied parameter that the rank
    has under its other name.
    """
    at = coordinates_of(layout.mesh, facts.rank).get("pp", 0)
    for group in groups(layout, sizes):
        pattern = group.place.pattern
        here = any(at in stages or not layout.stages for _, stages in group.names)
        names = (pattern, *tied_to(layout, pattern))
        if group.place.kind != "param" or not here or any(_is_held(one, facts) for one in names):
            continue
        module = pattern.rpartition(".")[0]
        if "*" not in module or _is_held(f"{module}.*", facts):
            said = "the layout has it, and the model has no parameter of that name"
            yield pattern, said


def _is_held(pattern: str, facts: RankFacts) -> bool:
    """True if the rank has a parameter of a name that fits."""
    return any(fits(pattern, each.name) for each in facts.parameters)


def judged(
    layout: LayoutDeclaration, sizes: Sizes, facts: RankFacts
) -> Iterator[tuple[Activation, Sizes]]:
    """The rank's activations that the layout places, each with its known sizes.

    Sizes of the input that are not given are read from the first activation. An activation with
    another size has a size of its own, unless the two differ by a factor of numbers of ranks: a
    head may be given the last position alone.
    """
    first: dict[str, int] = {}
    for each in facts.activations:
        tensor = each.tensor
        place = placement_of(layout, each.kind, tensor.name, sizes.known)
        elsewhere = layout.stages and stage_on(layout, tensor.name, facts.rank) is None
        if place is None or not isinstance(place.shape, Shape) or elsewhere:
            continue
        own = _shown(place.shape, tensor.shape, sizes)
        for name, size in own.items():
            first.setdefault(name, size)
        known = {
            name: first[name] if _by_ranks(size, first[name], layout) else size
            for name, size in own.items()
        }
        yield each, Sizes({**first, **known, **sizes.sizes}, sizes.axes, sizes.flags)


def activations(
    layout: LayoutDeclaration, sizes: Sizes, facts: RankFacts
) -> Iterator[tuple[str, str]]:
    """Inputs and outputs of modules that are not cut as the layout says."""
    for each, known in judged(layout, sizes, facts):
        try:
            said = cut(layout, known, facts, each.kind, each.tensor)
        except UnknownSize:  # nothing shows it
            continue
        if said:
            yield f"{each.kind} {each.tensor.name}", said


def _shown(shape: Shape, held: Sequence[int], sizes: Sizes) -> dict[str, int]:
    """Sizes that follow from a rank's shape of a tensor: size -> number."""
    if len(shape.dimensions) != len(held):
        return {}
    return {
        each.size: size * prod(sizes.of(split.axis) for split in each.splits)
        for each, size in zip(shape.dimensions, held, strict=True)
        if isinstance(each.size, str) and each.size not in sizes.sizes and not each.padding
    }


def _by_ranks(one: int, other: int, layout: LayoutDeclaration) -> bool:
    """True if one size is another divided or multiplied by numbers of ranks. Then a cut is missing
    or doubled.
    """
    small, large = sorted((one, other))
    factors = {1}
    for size in layout.mesh.all_axes.values():
        factors |= {each * size for each in factors}
    return small > 0 and large % small == 0 and large // small in factors


def axes_as_in(layout: LayoutDeclaration, facts: RankFacts) -> dict[str, str]:
    """The axes of the script's mesh -> the axes of the layout over the same ranks."""
    own = {each: axis for axes in factorisations(layout.mesh) for axis, each in _strides(axes)}
    return {axis: own[each] for axis, each in _strides(facts.axes) if each in own}


def _strides(axes: Axes) -> Iterator[tuple[str, tuple[int, int]]]:
    """Each axis with several ranks, its size, and the distance of neighbouring ranks on it."""
    stride = 1
    for axis, size in axes:
        if size > 1:
            yield axis, (size, stride)
        stride *= size


def _axes_text(axes: Sequence[str]) -> str:
    return ", ".join(f"`{axis}`" for axis in axes) or "no axis"
