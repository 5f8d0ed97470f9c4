"""The values of a layout's names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from tspec.resolve.program.sharding import (
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
