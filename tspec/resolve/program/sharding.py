"""Meshes, `dims` and layouts as values without syntax."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Literal

from tspec.resolve.program.expressions import Expr
from tspec.source import NOWHERE, Source, Span

Axes = tuple[tuple[str, int], ...]
"""Axes with their numbers of ranks, the axis that changes fastest first."""


@dataclass(frozen=True, slots=True)
class MeshDeclaration:
    """The ranks of a job by axis.

    `regroups` are other factorisations of the same ranks, by name, as experts have them.
    """

    name: str
    module: str
    axes: Axes
    regroups: tuple[tuple[str, Axes], ...] = ()

    @property
    def world(self) -> int:
        """The number of ranks."""
        return prod(size for _, size in self.axes)

    @property
    def all_axes(self) -> dict[str, int]:
        """The sizes of all axes, regroupings included."""
        found = dict(self.axes)
        for _, axes in self.regroups:
            found.update(axes)
        return found


@dataclass(frozen=True, slots=True)
class DimsDeclaration:
    """Sizes by name, in numbers."""

    name: str
    module: str
    sizes: tuple[tuple[str, int], ...]


# --- how a tensor is cut ------------------------------------------------------------------------

Order = Literal["contiguous", "zigzag"]
"""`zigzag`: rank r of n gets chunks r and 2n - 1 - r of 2n (load-balanced context parallelism)."""


@dataclass(frozen=True, slots=True)
class Split:
    """A dimension is cut over the ranks of an axis."""

    axis: str
    order: Order = "contiguous"


Term = str | int
"""A size by its name, or a number."""


@dataclass(frozen=True, slots=True)
class Sum:
    """Sections of these sizes, one after another. A rank has its part of each, in this order.

    All sections are cut over the same axes, or none is.
    """

    terms: tuple[Term | Product, ...]


@dataclass(frozen=True, slots=True)
class Product:
    """One dimension made of several; the last one changes fastest."""

    dimensions: tuple[Dimension, ...]


@dataclass(frozen=True, slots=True)
class Dimension:
    """One dimension of a tensor.

    It is padded to a multiple of the product of `padding` (empty: not padded), then cut over the
    axes of `splits`, the first one outermost.
    """

    size: Term | Sum | Product
    padding: tuple[Term, ...] = ()
    splits: tuple[Split, ...] = ()


@dataclass(frozen=True, slots=True)
class Shape:
    """A tensor with dimensions that may be sharded."""

    dimensions: tuple[Dimension, ...]


@dataclass(frozen=True, slots=True)
class Flat:
    """A tensor whose shard on a rank is flattened, padded as a dimension is, then cut again.

    Optimizer state is cut in this way: the shard of the parameter is flattened.
    """

    splits: tuple[Split, ...]
    padding: tuple[Term, ...] = ()


TensorKind = Literal[
    "param", "grad", "state", "input", "input_grad", "output", "output_grad", "buffer"
]


@dataclass(frozen=True, slots=True)
class Placement:
    """The sharding of the tensors of a kind whose canonical name matches a pattern.

    `fits` tests a name. The ranks' tensors are partial sums over the axes of `partial`, and
    replicas over those of `replicated`. `when` reads axes and flags as names of the context.
    """

    kind: TensorKind
    pattern: str
    shape: Shape | Flat
    partial: tuple[str, ...] = ()
    replicated: tuple[str, ...] = ()
    when: Expr | None = None
    span: Span = field(default=NOWHERE, compare=False, repr=False)
    pattern_span: Span = field(default=NOWHERE, compare=False, repr=False)

    def fits(self, name: str) -> bool:
        """True if the placement applies to a tensor's name."""
        return fits(self.pattern, name)

    @property
    def cut_over(self) -> frozenset[str]:
        """The axes over which the tensors are cut or are summands."""
        return frozenset((*self.partial, *(split.axis for split in splits(self.shape))))


def fits(pattern: str, name: str) -> bool:
    """True if a name fits a pattern.

    `*` stands for one or more characters of one part of a dotted name; at the beginning of the
    pattern for one or more parts. It stands for no bracket. A further input of a module, such as
    `cross[memory]`, is therefore matched only by a pattern that names its argument.
    """
    return re.fullmatch(matching(pattern), name) is not None


def matching(pattern: str) -> str:
    """The regular expression of the names that fit a pattern."""
    first, *others = pattern.split("*")
    part = r"[^.\[\]]+"
    star = r"[^\[\]]+" if pattern.startswith("*") else part
    return re.escape(first) + (star if others else "") + part.join(map(re.escape, others))


def splits(shape: Shape | Flat) -> Iterator[Split]:
    """All cuts of a shape, in the order of its text. Consecutive sections have the same cuts, so
    those of the first are given.
    """
    if isinstance(shape, Flat):
        yield from shape.splits
        return
    for dimension in shape.dimensions:
        size = dimension.size
        inside = size.terms[0] if isinstance(size, Sum) else size
        if isinstance(inside, Product):
            yield from splits(Shape(inside.dimensions))
        yield from dimension.splits


@dataclass(frozen=True, slots=True)
class Tie:
    """One tensor under two canonical names."""

    left: str
    right: str


@dataclass(frozen=True, slots=True)
class Modules:
    """Modules of a stage: `prefix` alone, or `prefix0suffix` to `prefix11suffix` (both included)."""

    prefix: str
    numbers: tuple[int, int] | None = None
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class Stage:
    """The modules on a stage of the pipeline; `chunk` is the virtual stage, 0 without interleaving."""

    number: int
    chunk: int
    modules: tuple[Modules, ...]


@dataclass(frozen=True, slots=True)
class LayoutDeclaration:
    """The shard of each tensor that each rank holds.

    Over the axes of `replicated`, ranks hold the same tensors, unless a placement shards or sums
    over them. `flags` are the boolean settings that conditions of placements read.
    """

    name: str
    module: str
    mesh: MeshDeclaration
    dims: DimsDeclaration | None
    flags: tuple[str, ...]
    placements: tuple[Placement, ...]
    ties: tuple[Tie, ...]
    stages: tuple[Stage, ...]
    replicated: tuple[str, ...]
    source: Source = field(compare=False, repr=False)
    span: Span = field(compare=False, repr=False)
    """The span of the layout's name."""
