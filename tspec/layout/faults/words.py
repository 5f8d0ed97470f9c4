"""How faults of layouts are said: places, indices, and numbers for sizes that have none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from tspec.diagnostics import Diagnostic
from tspec.resolve.program.sharding import (
    Dimension,
    LayoutDeclaration,
    Placement,
    Product,
    Shape,
    Sum,
)


def at(
    layout: LayoutDeclaration, place: Placement, code: str, message: str, hint: str
) -> Diagnostic:
    """A fault of a place."""
    return Diagnostic(code, message, place.span, layout.source, hint=hint)


def shown(place: Placement) -> str:
    """A place as messages name it."""
    return f'`{place.kind} "{place.pattern}"`'


def index_text(index: Sequence[int]) -> str:
    """`7`, or `(7, 0)` in several dimensions."""
    return str(index[0]) if len(index) == 1 else f"({', '.join(map(str, index))})"


def free_sizes(layout: LayoutDeclaration, place: Placement | None) -> dict[str, int]:
    """Numbers for the sizes of a place that have none, which all axes divide."""
    known = {*(dict(layout.dims.sizes) if layout.dims else {}), *layout.mesh.all_axes}
    free = 2 * prod(layout.mesh.all_axes.values())
    return {name: free for name in _names(place) if name not in known}


def _names(place: Placement | None) -> Iterator[str]:
    pending: list[Dimension] = []
    if place is not None and isinstance(place.shape, Shape):
        pending += place.shape.dimensions
    while pending:
        size = pending.pop().size
        if isinstance(size, Product):
            pending += size.dimensions
        else:
            terms = size.terms if isinstance(size, Sum) else (size,)
            yield from (term for term in terms if isinstance(term, str))
