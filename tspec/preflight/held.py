"""The indices of a parameter that a rank holds, from torch's placements or megatron-core's blocks."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from tspec.preflight.facts import Block, TensorFacts

Numbers = tuple[int, ...]
"""The indices of one dimension, in the rank's order."""


def indices_of_placements(
    facts: TensorFacts, sizes: Mapping[str, int], where: Mapping[str, int]
) -> tuple[Numbers, ...]:
    """The indices that a rank at a place of the mesh holds: torch shards over mesh axes in order,
    strided ones last.
    """
    numbers = [tuple(range(size)) for size in facts.full]
    for how in ("shard", "strided"):
        for cut in facts.placements:
            if cut.how == how:
                numbers[cut.dim] = _chunk(numbers[cut.dim], sizes[cut.axis], where[cut.axis])
    return tuple(numbers)


def _chunk(numbers: Numbers, pieces: int, piece: int) -> Numbers:
    """One chunk as `torch.chunk` makes it: chunks have one length, the last ones are shorter or
    empty.
    """
    length = -(-len(numbers) // pieces)
    return numbers[piece * length : (piece + 1) * length]


def indices_of_blocks(blocks: tuple[Block, ...]) -> tuple[Numbers, ...] | None:
    """The indices that a rank holds. None if its blocks are no combination of indices of their
    dimensions.
    """
    numbers = []
    for dim in range(len(blocks[0][0])):
        seen = dict.fromkeys((offset[dim], shape[dim]) for offset, shape in blocks)
        numbers.append(tuple(i for start, length in seen for i in range(start, start + length)))
    if prod(map(len, numbers)) != sum(prod(shape) for _, shape in blocks):
        return None
    return tuple(numbers)
