"""The placement of each parameter in a dry run: DTensor placements, and megatron-core's blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from tspec.infer.layouts.shards import Found, ShardIndices, Unknown
from tspec.layout.ranks import coordinates
from tspec.preflight.facts import RankFacts, TensorFacts
from tspec.preflight.held import indices_of_blocks, indices_of_placements
from tspec.resolve.program.sharding import Axes


def is_plain(facts: TensorFacts) -> bool:
    """True if no framework records which elements of the tensor a rank has."""
    return not (facts.placements or facts.blocks)


def found(ranks: Sequence[RankFacts], alone: RankFacts | None = None) -> Found:
    """The tensors of each rank.

    One rank's DTensor describes all shards; blocks describe each rank's own. `alone` is a job of
    one rank, in which plain tensors have their full shape. None if there is no such run.
    """
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
    of_experts: dict[str, dict[int, list[TensorFacts]]] = {}
    for rank in ranks:
        for each in rank.parameters:
            if each.expert is None:
                held.setdefault(each.name, {})[rank.rank] = each
            else:
                of_experts.setdefault(each.expert.all, {}).setdefault(rank.rank, []).append(each)
    whole = {} if alone is None else {each.name: each.full for each in alone.parameters}
    tensors = [_tensor(name, each, len(ranks), axes, whole) for name, each in held.items()]
    tensors += [_of_experts(name, each, axes) for name, each in of_experts.items()]
    who = (
        f"rank {first.rank} of {first.world}" if len(ranks) == 1 else f"none of {first.world} ranks"
    )
    why = f"one rank has it, and {who} has {'none' if len(ranks) == 1 else 'one'} of that name"
    tensors += (Unknown(name, why) for name in whole if name not in held)
    return Found(axes, tuple(tensors), first.expert_axes if of_experts else ())


def _tensor(
    name: str,
    held: dict[int, TensorFacts],
    known: int,
    axes: Axes,
    alone: Mapping[str, tuple[int, ...]],
) -> ShardIndices | Unknown:
    first = next(iter(held.values()))
    ranks = held if known > 1 else range(prod(size for _, size in axes))
    if first.placements:
        return _of_placements(first, axes, tuple(ranks))
    if first.blocks:
        return _of_blocks(name, held, axes)
    note = "" if known > 1 else "a plain tensor: taken for the same on all ranks"
    whole = tuple(tuple(range(size)) for size in first.full)
    if any(each.full != first.full for each in held.values()):
        return Unknown(name, "it is a plain tensor with different shapes on different ranks")
    if alone.get(name, first.full) != first.full:
        shapes = f"{list(first.full)}, and {list(alone[name])} on one rank"
        why = f"it is a plain tensor of {shapes}: shapes do not tell how it is cut, data do (`--full`)"
        return Unknown(name, why)
    held_by = dict.fromkeys(ranks, whole)
    return ShardIndices(name, first.full, held_by, (), note, chunk=first.chunk)


def _of_placements(
    facts: TensorFacts, axes: Axes, ranks: tuple[int, ...]
) -> ShardIndices | Unknown:
    """The shards of some ranks: torch cuts over the mesh axes in order, strided ones last."""
    sizes = dict(axes)
    strange = [each.axis for each in facts.placements if each.axis not in sizes]
    if strange:
        return Unknown(facts.name, f"its mesh axis `{strange[0]}` is none of the largest mesh")
    partial = tuple(each.axis for each in facts.placements if each.how == "partial")
    held = {rank: indices_of_placements(facts, sizes, coordinates(axes, rank)) for rank in ranks}
    return ShardIndices(facts.name, facts.full, held, partial, chunk=facts.chunk)


def _of_blocks(name: str, held: dict[int, TensorFacts], axes: Axes) -> ShardIndices | Unknown:
    """Blocks that follow on one another along one dimension, as a rank has them."""
    found = {}
    full = next(iter(held.values())).full
    for rank, facts in held.items():
        indices = indices_of_blocks(facts.blocks)
        if indices is None:
            return Unknown(name, "its blocks are no combination of indices of its dimensions")
        found[rank] = indices
    stage = {rank: coordinates(axes, rank).get("pp", 0) for rank in held}
    first = min(held, key=lambda rank: stage[rank])
    copies = dict.fromkeys(
        (each.copy, stage[rank], each.chunk) for rank, each in held.items() if each.copy
    )
    return ShardIndices(name, full, found, chunk=held[first].chunk, copies=tuple(copies))


def _of_experts(
    name: str, held: Mapping[int, Sequence[TensorFacts]], axes: Axes
) -> ShardIndices | Unknown:
    """The tensor of all experts of a layer: its first dimension is the expert."""
    found = {}
    for rank, facts in held.items():
        pieces = {indices_of_blocks(each.blocks) for each in facts}
        [piece] = pieces if len(pieces) == 1 else [None]
        if piece is None:
            return Unknown(name, "the experts of a rank are not cut alike")
        found[rank] = (tuple(each.expert.number for each in facts if each.expert), *piece)
    first = min(held, key=lambda rank: coordinates(axes, rank).get("pp", 0))
    [one, *_] = held[first]
    assert one.expert is not None
    full = (one.expert.count, *one.full)
    return ShardIndices(name, full, found, chunk=one.chunk, of_experts=True)
