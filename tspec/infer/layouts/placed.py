"""What a dry run says of each parameter: DTensor placements, and megatron-core's blocks."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tspec.infer.layouts.pieces import Found, ShardIndices, Unknown
from tspec.layout.ranks import coordinates
from tspec.preflight.facts import RankFacts, TensorFacts
from tspec.preflight.held import indices_of_blocks, indices_of_placements
from tspec.resolve.program.sharding import Axes


def found(ranks: Sequence[RankFacts]) -> Found:
    """What each rank holds. Of a DTensor one rank tells of all; of blocks each tells of its own."""
    first = ranks[0]
    axes = first.axes or (("ranks", first.world),)
    if prod(size for _, size in axes) != first.world:
        return Found(
            axes,
            tuple(
                Unknown(each.name, f"its mesh is not one of {first.world} ranks")
                for each in first.parameters
            ),
        )
    held: dict[str, dict[int, TensorFacts]] = {}
    for rank in ranks:
        for each in rank.parameters:
            held.setdefault(each.name, {})[rank.rank] = each
    return Found(axes, tuple(_tensor(name, each, len(ranks), axes) for name, each in held.items()))


def _tensor(
    name: str, held: dict[int, TensorFacts], known: int, axes: Axes
) -> ShardIndices | Unknown:
    first = next(iter(held.values()))
    ranks = held if known > 1 else range(prod(size for _, size in axes))
    if first.placements:
        return _of_placements(first, axes, tuple(ranks))
    if first.blocks:
        return _of_blocks(name, held)
    note = "" if known > 1 else "a plain tensor: taken for the same on all ranks"
    whole = tuple(tuple(range(size)) for size in first.full)
    if any(each.full != first.full for each in held.values()):
        return Unknown(name, "it is a plain tensor with different shapes on different ranks")
    return ShardIndices(name, first.full, dict.fromkeys(ranks, whole), (), note)


def _of_placements(
    facts: TensorFacts, axes: Axes, ranks: tuple[int, ...]
) -> ShardIndices | Unknown:
    """The pieces of some ranks: torch cuts over the mesh axes in order, strided ones last."""
    sizes = dict(axes)
    strange = [each.axis for each in facts.placements if each.axis not in sizes]
    if strange:
        return Unknown(facts.name, f"its mesh axis `{strange[0]}` is none of the largest mesh")
    partial = tuple(each.axis for each in facts.placements if each.how == "partial")
    held = {rank: indices_of_placements(facts, sizes, coordinates(axes, rank)) for rank in ranks}
    return ShardIndices(facts.name, facts.full, held, partial)


def _of_blocks(name: str, held: dict[int, TensorFacts]) -> ShardIndices | Unknown:
    """Blocks that follow on one another along one dimension, as a rank has them."""
    found = {}
    full = next(iter(held.values())).full
    for rank, facts in held.items():
        indices = indices_of_blocks(facts.blocks)
        if indices is None:
            return Unknown(name, "its blocks are no combination of indices of its dimensions")
        found[rank] = indices
    return ShardIndices(name, full, found)
