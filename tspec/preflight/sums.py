"""Checks the sums over ranks in a rank's first step against those that the layout needs."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from math import prod

from tspec.layout.conditions import is_true
from tspec.layout.places import placement_of
from tspec.layout.ranks import coordinates, coordinates_of, rank_at
from tspec.layout.replicas import spread
from tspec.layout.sizes import Sizes
from tspec.preflight.experts import placed_name
from tspec.preflight.facts import Collective, RankFacts, Reduction, TensorFacts, adds_up
from tspec.preflight.tensors import axes_as_in
from tspec.resolve.program.sharding import (
    Axes,
    Dimension,
    LayoutDeclaration,
    Placement,
    Product,
    Shape,
    Split,
    splits,
)


def data_axes(layout: LayoutDeclaration, sizes: Sizes) -> tuple[frozenset[str], frozenset[str]]:
    """The axes with several ranks that shard the batch, and those that shard the sequence."""
    found: dict[str, set[str]] = {"batch": set(), "seq": set()}
    for place in layout.placements:
        if not is_true(place.when, sizes.known):
            continue
        for each in place.shape.dimensions if isinstance(place.shape, Shape) else ():
            for name, axes in found.items():
                cuts = (split.axis for split in _cuts_of(each, name))
                axes.update(axis for axis in cuts if layout.mesh.all_axes[axis] > 1)
    return frozenset(found["batch"]), frozenset(found["seq"])


def _cuts_of(dimension: Dimension, name: str) -> tuple[Split, ...]:
    """The cuts of a size, alone or in a product with numbers, as `(batch, 2 / dp)` of samples in turn."""
    size = dimension.size
    if size == name:
        return dimension.splits
    if not isinstance(size, Product) or name not in (each.size for each in size.dimensions):
        return ()
    parts = (each for each in size.dimensions if each.size == name or isinstance(each.size, int))
    return (*dimension.splits, *(split for each in parts for split in each.splits))


class Sums:
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


def gradients(
    layout: LayoutDeclaration, sizes: Sizes, facts: RankFacts, sums: Sums
) -> Iterator[tuple[str, str]]:
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
            if not by and not _by_torch(parameter, axis, layout, sums, axis in batch):
                said = f"its gradient is not added up over `{axis}`, which cuts the data"
                yield parameter.name, said
            elif _doubled(by):
                ways = " and ".join(dict.fromkeys(each.by for each in by))
                said = f"its gradient is added up over `{axis}` more than once, by {ways}"
                yield parameter.name, said
        for axis in sorted(cut):
            by = [each for each in sums.of_gradients(axis) if each.parameter == parameter.name]
            if any(_gives_all(each.by) for each in by):
                said = f"its gradient is added up over `{axis}`, which cuts the parameter"
                yield parameter.name, said


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


def _by_torch(
    parameter: TensorFacts, axis: str, layout: LayoutDeclaration, sums: Sums, cuts_batch: bool
) -> bool:
    """True if torch, or a sum that was not followed to a parameter, may sum a gradient over an
    axis.

    Torch sums the gradient of a DTensor over an axis of its mesh when the DTensor is used. The
    elements of sums that belong to no parameter are counted: a script may copy gradients into
    tensors of its own. Over an axis that cuts sequences only, reduce-scatters of the backward pass
    are of activations: what is cut there is added up and cut again on the way back.
    """
    names = axes_as_in(layout, sums.facts)
    placed = {names.get(each.axis, each.axis): each.how for each in parameter.placements}
    if placed.get(axis) == "replicate":
        return True
    over = sums.over(axis)
    if axis in placed:
        return bool(over)
    followed = {each.parameter for each in sums.of_gradients(axis)}
    known = sum(_elements(each) for each in sums.facts.parameters if each.name in followed)
    outside = sum(
        each.elements
        for each in over
        if each.where == "" or (each.where == "backward" and (cuts_batch or _gives_all(each.op)))
    )
    return outside - known >= _elements(parameter)


def _doubled(by: Sequence[Reduction]) -> bool:
    """True if a library and the script sum the gradient, or the script sums it twice.

    A library sums once in each backward pass, and a step may have several passes.
    """
    libraries = {each.by for each in by if not adds_up(each.by)}
    own = [each for each in by if adds_up(each.by)]
    return len(libraries) + len(own) > 1


def products(
    layout: LayoutDeclaration, sizes: Sizes, facts: RankFacts, sums: Sums
) -> Iterator[tuple[str, str]]:
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
                yield module.name, said
            elif not own and not any(_around(each.where, module.name, facts) for each in over):
                said = (
                    f"its output is not added up over `{axis}`, which cuts the dimension that "
                    f"`{name}` sums over"
                )
                yield module.name, said


def inputs(
    layout: LayoutDeclaration, sizes: Sizes, facts: RankFacts, sums: Sums, wrong: Container[str]
) -> Iterator[tuple[str, str]]:
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
                yield module, said
            elif later.isdisjoint(each.parameter for each in parts) and not all(
                sums.has(axis, each.over) for each in parts
            ):
                said = (
                    f"the gradient of its input is not added up over `{axis}`, which cuts the "
                    f"dimension of `{weight}` that the backward pass sums over"
                )
                yield module, said


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


def _elements(parameter: TensorFacts) -> int:
    return prod(parameter.shape)


def _calls(number: int) -> str:
    return f"{number} call{'' if number == 1 else 's'}"
