"""Checks a rank's first step against a layout: parameters, activations, and the sums that the
layout needs.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

from tspec.layout.conditions import is_true
from tspec.layout.places import placement_of, tied_to
from tspec.layout.ranks import coordinates, coordinates_of, factorisations, rank_at
from tspec.layout.replicas import spread
from tspec.layout.rows import groups
from tspec.layout.shards import UnevenShards, shard, stage_on
from tspec.layout.sizes import Sizes, UnknownSize
from tspec.layout.text import indices_text
from tspec.preflight.experts import joined, placed_name
from tspec.preflight.facts import (
    Activation,
    Collective,
    RankFacts,
    Reduction,
    TensorFacts,
    adds_up,
)
from tspec.preflight.held import Numbers, indices_of_blocks, indices_of_placements
from tspec.resolve.program.sharding import (
    Axes,
    LayoutDeclaration,
    Placement,
    Shape,
    TensorKind,
    fits,
    splits,
)


@dataclass(frozen=True, slots=True)
class Problem:
    """A parameter or module of a rank that is not as the layout says, or a sum that is missing or doubled."""

    rank: int
    name: str
    what: str


def problems(
    layout: LayoutDeclaration, sizes: Sizes, ranks: Sequence[RankFacts]
) -> tuple[Problem, ...]:
    """The deviations of each rank from the layout."""
    found: list[Problem] = []
    for facts in ranks:
        whole = replace(facts, parameters=joined(facts.parameters))
        for parameter in whole.parameters:
            said = _parameter(layout, sizes, whole, parameter)
            found += [Problem(facts.rank, parameter.name, said)] if said else []
        found += _lacking(layout, sizes, whole)
        found += _activations(layout, sizes, facts)
        if facts.updated:
            sums = _Sums(layout, facts)
            found += _gradients(layout, sizes, facts, sums)
            found += _products(layout, sizes, facts, sums)
            found += _inputs(layout, sizes, facts, sums, {each.name for each in found})
    return tuple(found)


# --- parameters ---------------------------------------------------------------------------------


def _parameter(
    layout: LayoutDeclaration, sizes: Sizes, facts: RankFacts, parameter: TensorFacts
) -> str:
    """A parameter's deviation from the layout; empty if none."""
    if placement_of(layout, "param", parameter.name, sizes.known) is None:
        return "no place of the layout fits it"
    return cut(layout, sizes, facts, "param", parameter)


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
    names = _as_in(layout, facts)
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


def _lacking(layout: LayoutDeclaration, sizes: Sizes, facts: RankFacts) -> Iterator[Problem]:
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
            yield Problem(facts.rank, pattern, said)


def _is_held(pattern: str, facts: RankFacts) -> bool:
    """True if the rank has a parameter of a name that fits."""
    return any(fits(pattern, each.name) for each in facts.parameters)


# --- activations --------------------------------------------------------------------------------


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


def _activations(layout: LayoutDeclaration, sizes: Sizes, facts: RankFacts) -> Iterator[Problem]:
    """Inputs and outputs of modules that are not cut as the layout says."""
    for each, known in judged(layout, sizes, facts):
        try:
            said = cut(layout, known, facts, each.kind, each.tensor)
        except UnknownSize:  # nothing shows it
            continue
        if said:
            yield Problem(facts.rank, f"{each.kind} {each.tensor.name}", said)


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


# --- sums ---------------------------------------------------------------------------------------


def data_axes(layout: LayoutDeclaration, sizes: Sizes) -> tuple[frozenset[str], frozenset[str]]:
    """The axes with several ranks that shard the batch, and those that shard the sequence."""
    found: dict[str, set[str]] = {"batch": set(), "seq": set()}
    for place in layout.placements:
        if not is_true(place.when, sizes.known):
            continue
        for each in place.shape.dimensions if isinstance(place.shape, Shape) else ():
            if isinstance(each.size, str) and each.size in found:
                found[each.size].update(
                    split.axis for split in each.splits if layout.mesh.all_axes[split.axis] > 1
                )
    return frozenset(found["batch"]), frozenset(found["seq"])


class _Sums:
    """The sums of a rank with others, by the axes of the layout."""

    def __init__(self, layout: LayoutDeclaration, facts: RankFacts) -> None:
        self.facts = facts
        groups = {each.ranks for each in facts.reductions}
        groups |= {each.ranks for each in facts.collectives}
        groups |= {ranks for each in facts.summands for ranks in (*each.over, *each.twice)}
        self._axes = {ranks: _axes_of(layout, ranks) for ranks in groups}

    def over(self, axis: str) -> list[Collective]:
        """The collectives that add up over an axis."""
        return [
            each
            for each in self.facts.collectives
            if adds_up(each.op) and axis in self._axes[each.ranks]
        ]

    def has(self, axis: str, groups: Sequence[tuple[int, ...]]) -> bool:
        """True if one of the groups sums over an axis."""
        return any(axis in self._axes[ranks] for ranks in groups)

    def of_gradients(self, axis: str) -> list[Reduction]:
        """The gradients that are added up over an axis."""
        return [each for each in self.facts.reductions if axis in self._axes[each.ranks]]


def _gradients(
    layout: LayoutDeclaration, sizes: Sizes, facts: RankFacts, sums: _Sums
) -> Iterator[Problem]:
    """Problems of gradients that are not summed over an axis that shards the data, are summed
    twice, or are summed over an axis on which ranks hold other shards.
    """
    batch, seq = data_axes(layout, sizes)
    for parameter in facts.parameters:
        place = placement_of(layout, "param", placed_name(parameter), sizes.known)
        if place is None:
            continue
        axes = spread(layout, place).axes or ()
        mine = {axis for axis, _ in axes}
        cut = {split.axis for split in splits(place.shape)}
        regrouped = {
            axis
            for axis in mine - cut - {name for name, _ in layout.mesh.axes}
            if _cuts_data(layout, axes, axis, facts.rank, batch | seq)
        }
        for axis in sorted(((batch | (seq - cut)) & mine) | regrouped):
            by = [each for each in sums.of_gradients(axis) if each.parameter == parameter.name]
            if not by and not _by_torch(parameter, axis, layout, sums):
                said = f"its gradient is not added up over `{axis}`, which cuts the data"
                yield Problem(facts.rank, parameter.name, said)
            elif _doubled(by):
                ways = " and ".join(dict.fromkeys(each.by for each in by))
                said = f"its gradient is added up over `{axis}` more than once, by {ways}"
                yield Problem(facts.rank, parameter.name, said)
        for axis in sorted(cut):
            by = [each for each in sums.of_gradients(axis) if each.parameter == parameter.name]
            if any(_gives_all(each.by) for each in by):
                said = f"its gradient is added up over `{axis}`, which cuts the parameter"
                yield Problem(facts.rank, parameter.name, said)


def _cuts_data(
    layout: LayoutDeclaration, axes: Axes, axis: str, rank: int, data: frozenset[str]
) -> bool:
    """True if the ranks along an axis of a factorisation differ on an axis that cuts the data."""
    mine = coordinates_of(layout.mesh, rank)
    along = (
        coordinates_of(layout.mesh, rank_at(axes, {**coordinates(axes, rank), axis: place}))
        for place in range(dict(axes)[axis])
    )
    return any(at[name] != mine[name] for at in along for name in data)


def _gives_all(op: str) -> bool:
    """True if each rank gets the full sum, and not its shard of it."""
    return adds_up(op) and "scatter" not in op


def _by_torch(parameter: TensorFacts, axis: str, layout: LayoutDeclaration, sums: _Sums) -> bool:
    """True if torch, or a sum that was not followed to a parameter, may sum a gradient over an
    axis.

    Torch sums the gradient of a DTensor over an axis of its mesh when the DTensor is used. The
    elements of sums that belong to no parameter are counted: a script may copy gradients into
    tensors of its own.
    """
    names = _as_in(layout, sums.facts)
    placed = {names.get(each.axis, each.axis): each.how for each in parameter.placements}
    if placed.get(axis) == "replicate":
        return True
    over = sums.over(axis)
    if axis in placed:
        return bool(over)
    followed = {each.parameter for each in sums.of_gradients(axis)}
    known = sum(_elements(each) for each in sums.facts.parameters if each.name in followed)
    outside = sum(each.elements for each in over if each.where in ("", "backward"))
    return outside - known >= _elements(parameter)


def _doubled(by: Sequence[Reduction]) -> bool:
    """True if a library and the script sum the gradient, or the script sums it twice.

    A library sums once in each backward pass, and a step may have several passes.
    """
    libraries = {each.by for each in by if not adds_up(each.by)}
    own = [each for each in by if adds_up(each.by)]
    return len(libraries) + len(own) > 1


def _products(
    layout: LayoutDeclaration, sizes: Sizes, facts: RankFacts, sums: _Sums
) -> Iterator[Problem]:
    """Matrix products that are partial sums on each rank, and that nothing reduces.

    A weight `[out, in / axis]` has outputs that are summands, where the layout does not say so.
    """
    batch, _ = data_axes(layout, sizes)
    for module in facts.modules:
        name = f"{module.name}.weight"
        place = placement_of(layout, "param", name, sizes.known)
        if place is None or "Embedding" in module.kind:
            continue
        output = placement_of(layout, "output", module.name, sizes.known)
        for axis in sorted(_summed_over(place) - batch):
            if layout.mesh.all_axes[axis] == 1 or (output and axis in output.partial):
                continue
            over = sums.over(axis)
            own = sum(each.calls for each in over if each.where == module.name)
            if own > module.calls:
                said = f"its output is added up over `{axis}` {own} times in {_calls(module.calls)}"
                yield Problem(facts.rank, module.name, said)
            elif not own and not any(_around(each.where, module.name, facts) for each in over):
                said = (
                    f"its output is not added up over `{axis}`, which cuts the dimension that "
                    f"`{name}` sums over"
                )
                yield Problem(facts.rank, module.name, said)


def _inputs(
    layout: LayoutDeclaration, sizes: Sizes, facts: RankFacts, sums: _Sums, wrong: Container[str]
) -> Iterator[Problem]:
    """Problems of input gradients that are partial sums on each rank, and are not summed, or are
    summed twice.

    A weight `[out / axis, in]` leaves partial sums in the gradient of its input. A weight in
    `wrong` is left out.
    """
    batch, _ = data_axes(layout, sizes)
    for weight, dimension in dict.fromkeys(
        (each.weight, each.dimension) for each in facts.summands
    ):
        place = placement_of(layout, "param", weight, sizes.known)
        if place is None or not isinstance(place.shape, Shape) or weight in wrong:
            continue
        cut = {
            split.axis
            for split in splits(Shape(place.shape.dimensions[dimension : dimension + 1]))
            if layout.mesh.all_axes[split.axis] > 1
        }
        parts = [each for each in facts.summands if each.weight == weight]
        module = weight.rpartition(".")[0] or weight
        for axis in sorted(cut - batch):
            later = {each.parameter for each in sums.of_gradients(axis)}
            if any(sums.has(axis, each.twice) for each in parts):
                said = f"the gradient of its input is added up over `{axis}` more than once"
                yield Problem(facts.rank, module, said)
            elif later.isdisjoint(each.parameter for each in parts) and not all(
                sums.has(axis, each.over) for each in parts
            ):
                said = (
                    f"the gradient of its input is not added up over `{axis}`, which cuts the "
                    f"dimension of `{weight}` that the backward pass sums over"
                )
                yield Problem(facts.rank, module, said)


def _summed_over(place: Placement) -> frozenset[str]:
    """The axes that cut the last dimension of a matrix."""
    if not isinstance(place.shape, Shape) or len(place.shape.dimensions) != 2:
        return frozenset()
    return frozenset(split.axis for split in splits(Shape(place.shape.dimensions[1:])))


def _around(where: str, module: str, facts: RankFacts) -> bool:
    """True if a place is a module that contains another one, the full model, or outside of all
    modules.
    """
    if where in ("", "backward") or module.startswith(f"{where}."):
        return where != "backward"
    return not any(each.name.startswith(f"{where}.") for each in facts.parameters)


def _axes_of(layout: LayoutDeclaration, ranks: Sequence[int]) -> frozenset[str]:
    """The axes of the mesh, regroupings included, on which the ranks have different coordinates."""
    world = layout.mesh.world
    places = [coordinates_of(layout.mesh, rank) for rank in ranks if rank < world]
    return frozenset(
        axis for axis in layout.mesh.all_axes if len({each[axis] for each in places}) > 1
    )


def _as_in(layout: LayoutDeclaration, facts: RankFacts) -> dict[str, str]:
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


def _elements(parameter: TensorFacts) -> int:
    return prod(parameter.shape)


def _calls(number: int) -> str:
    return f"{number} call{'' if number == 1 else 's'}"


def _axes_text(axes: Sequence[str]) -> str:
    return ", ".join(f"`{axis}`" for axis in axes) or "no axis"
