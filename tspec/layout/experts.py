"""Experts that a model holds one by one, and the tensor that a layout has of all of a layer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tspec.layout.places import placement_of
from tspec.resolve.program.sharding import LayoutDeclaration, Shape, TensorKind

_NUMBER = re.compile(r"(\.local_experts)?\.(\d+)(?=\.)")


@dataclass(frozen=True, slots=True)
class Expert:
    """A tensor of one expert, in the list of modules `within`; `number` is its place in the tensor `all`, whose first dimension is the expert."""

    name: str
    within: str
    number: int
    all: str


def expert_of(
    layout: LayoutDeclaration,
    kind: TensorKind,
    name: str,
    dimensions: int,
    known: Mapping[str, int],
) -> Expert | None:
    """The expert that a tensor belongs to, by its name (`mlp.experts.3.fc1.weight`) and its number
    of dimensions. None if it belongs to none.

    The layout has a placement for the tensor of all experts, `mlp.experts.fc1.weight`. That tensor
    has one dimension more, and its placement comes before one for the tensor itself. megatron-core
    names the expert `mlp.experts.local_experts.3`.
    """
    own = placement_of(layout, kind, name, known)
    for each in _experts(name):
        place = placement_of(layout, kind, each.all, known)
        if place is None or not isinstance(place.shape, Shape):
            continue
        if len(place.shape.dimensions) != dimensions + 1:
            continue
        if own is None or layout.placements.index(place) < layout.placements.index(own):
            return each
    return None


def _experts(name: str) -> Iterator[Expert]:
    """The experts that may have a tensor of that name."""
    for found in _NUMBER.finditer(name):
        within = name[: found.start(2) - 1]
        yield Expert(name, within, int(found[2]), name[: found.start()] + name[found.end() :])
