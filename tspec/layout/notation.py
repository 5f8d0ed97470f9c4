"""Shapes in the notation of layouts."""

from __future__ import annotations

from tspec.resolve.program.sharding import Dimension, Flat, Product, Shape, Split, Sum, Term


def shape_notation(shape: Shape | Flat) -> str:
    """`[(groups / tp, q_per_group + 2, head), hidden]`, or `flat padded to dp / dp`."""
    if isinstance(shape, Flat):
        return f"flat{_padding(shape.padding)}{_splits(shape.splits)}"
    return f"[{', '.join(map(_dimension, shape.dimensions))}]"


def _dimension(dimension: Dimension) -> str:
    return f"{_size(dimension.size)}{_padding(dimension.padding)}{_splits(dimension.splits)}"


def _size(size: Term | Sum | Product) -> str:
    match size:
        case Product(dimensions=inside):
            return f"({', '.join(map(_dimension, inside))})"
        case Sum(terms=terms):
            return " + ".join(map(_size, terms))
        case term:
            return str(term)


def _padding(factors: tuple[Term, ...]) -> str:
    return f" padded to {' * '.join(map(str, factors))}" if factors else ""


def _splits(splits: tuple[Split, ...]) -> str:
    return "".join(
        f" / {each.axis}" if each.order == "contiguous" else f" / {each.order}({each.axis})"
        for each in splits
    )
