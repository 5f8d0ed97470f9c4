"""The values of a layout's names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from tspec.resolve.program.sharding import (
    Dimension,
    LayoutDeclaration,
    Placement,
    Product,
    Shape,
    Sum,
    Term,
)


class UnknownSize(Exception):
    """A size that is not given, such as `seq`."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The values of a layout's names.

    `sizes`: dimensions, including those of the input. `axes`: axes of the mesh. `flags`: the flags
    that are on.
    """

    sizes: Mapping[str, int]
    axes: Mapping[str, int]
    flags: frozenset[str] = frozenset()

    @property
    def known(self) -> dict[str, int]:
        """The values that conditions read."""
        return {**self.axes, **dict.fromkeys(self.flags, True)}

    def of(self, term: Term) -> int:
        """The value of a term. Raises UnknownSize."""
        if isinstance(term, int):
            return term
        found = self.sizes.get(term, self.axes.get(term))
        if found is None:
            raise UnknownSize(term)
        return found


def sizes_of(
    layout: LayoutDeclaration,
    given: Mapping[str, int] | None = None,
    flags: frozenset[str] = frozenset(),
) -> Sizes:
    """The layout's own numbers, and those given for the input (`seq`, `batch`)."""
    own = dict(layout.dims.sizes) if layout.dims else {}
    return Sizes({**own, **(given or {})}, layout.mesh.all_axes, flags)


def inputs(layout: LayoutDeclaration) -> tuple[str, ...]:
    """The sizes that come with the input of a step (`seq`, `batch`), as the layout reads them."""
    known = {*(dict(layout.dims.sizes) if layout.dims else {}), *layout.mesh.all_axes}
    found = (name for place in layout.placements for name in _names(place))
    return tuple(dict.fromkeys(name for name in found if name not in known))


@dataclass(frozen=True, slots=True)
class InputSize:
    """The part of a dimension whose size comes with the input.

    `others` is the product of the other sizes of the dimension.
    """

    name: str
    part: Dimension
    others: int = 1


def input_size(dimension: Dimension, sizes: Sizes) -> InputSize | None:
    """The size of the input that a dimension has, alone or in a product. None if it has none, or several."""
    if isinstance(dimension.size, str):
        is_open = dimension.size not in sizes.sizes
        return InputSize(dimension.size, dimension) if is_open else None
    if not isinstance(dimension.size, Product):
        return None
    found, others = None, 1
    for each in dimension.size.dimensions:
        try:
            others *= _number(each.size, sizes)
        except UnknownSize:
            if found is not None or not isinstance(each.size, str):
                return None
            found = InputSize(each.size, each)
    return None if found is None else InputSize(found.name, found.part, others)


def _number(size: Term | Sum | Product, sizes: Sizes) -> int:
    """A size in numbers, without its padding. Raises UnknownSize."""
    match size:
        case Product(dimensions=dimensions):
            return prod(_number(each.size, sizes) for each in dimensions)
        case Sum(terms=terms):
            return sum(_number(each, sizes) for each in terms)
        case _:
            return sizes.of(size)


def free_sizes(layout: LayoutDeclaration) -> dict[str, int]:
    """Numbers for the sizes of the input, which all axes divide."""
    return dict.fromkeys(inputs(layout), 2 * prod(layout.mesh.all_axes.values()))


def _names(place: Placement) -> Iterator[str]:
    pending: list[Term | Sum | Product] = []
    if isinstance(place.shape, Shape):
        pending += (each.size for each in place.shape.dimensions)
    while pending:
        match pending.pop():
            case Product(dimensions=dimensions):
                pending += (each.size for each in dimensions)
            case Sum(terms=terms):
                pending += terms
            case str(name):
                yield name
