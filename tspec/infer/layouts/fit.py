"""From the indices of each rank to a placement: the cut, in the notation, that gives just these indices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations
from math import prod

from tspec.infer.layouts.shards import Numbers, ShardIndices, Unknown
from tspec.layout.ranks import coordinates
from tspec.layout.shards import UnevenShards, indices
from tspec.layout.sizes import Sizes
from tspec.resolve.program.sharding import (
    Axes,
    Dimension,
    Placement,
    Product,
    Shape,
    Split,
    Sum,
)

PADDED = tuple(2**power for power in range(12))
"""Numbers whose multiples vocabularies are padded to, for each rank."""


def placement(pieces: ShardIndices, axes: Axes) -> Placement | Unknown:
    """The placement that gives each rank its tensor, or the reason why there is none."""
    mesh = dict(axes)
    stages = {"pp"} & {*mesh}
    where = {rank: coordinates(axes, rank) for rank in pieces.held}
    holding = {at.get("pp", 0) for at in where.values()}
    if len(pieces.held) * mesh.get("pp", 1) < prod(mesh.values()) * len(holding):
        if not stages:
            return Unknown(pieces.name, "not all ranks hold it, and the mesh has no axis `pp`")
        why = "only some ranks of a stage hold it, as experts that are held one by one: write one place for all"
        return Unknown(pieces.name, f"{why} (`[experts / ep, …]`)")
    used = stages | set(pieces.partial)
    dimensions = []
    for number, size in enumerate(pieces.full):
        held = {rank: each[number] for rank, each in pieces.held.items()}
        cut = [axis for axis, _ in axes if axis not in stages and _differs(held, where, axis)]
        found = _dimension(size, held, where, {axis: mesh[axis] for axis in cut}, mesh)
        if found is None:
            return Unknown(pieces.name, _why(number, held, size, cut))
        used.update(cut)
        dimensions.append(found)
    same = tuple(axis for axis, _ in axes if axis not in used)
    return Placement("param", pieces.name, Shape(tuple(dimensions)), pieces.partial, same)


def _differs(
    held: Mapping[int, Numbers], where: Mapping[int, Mapping[str, int]], axis: str
) -> bool:
    """True if ranks that differ in one axis alone hold different indices."""
    seen: dict[tuple[tuple[str, int], ...], Numbers] = {}
    for rank, numbers in held.items():
        others = tuple((name, at) for name, at in where[rank].items() if name != axis)
        if seen.setdefault(others, numbers) != numbers:
            return True
    return False


def _dimension(
    size: int,
    held: Mapping[int, Numbers],
    where: Mapping[int, Mapping[str, int]],
    cut: Mapping[str, int],
    mesh: Mapping[str, int],
) -> Dimension | None:
    """The first cut that gives each rank the indices that it holds."""
    sizes = Sizes({}, mesh)
    numbers = max(held.values(), key=len)
    parts = tuple(_runs(numbers))
    block = parts[0] if parts else 1
    outer = [len(numbers) // block] if len(numbers) % block == 0 else []
    for each in candidates(size, len(numbers), outer, cut, [parts] if len(parts) > 1 else []):
        try:
            if all(
                _same(tuple(indices(each, where[rank], sizes)), numbers, size)
                for rank, numbers in held.items()
            ):
                return each
        except UnevenShards:
            continue
    return None


def _same(placed: Numbers, held: Numbers, size: int) -> bool:
    """True if a rank holds the indices that a cut gives it. Indices of padding are all equal."""
    given = held_of(placed, len(held), size)
    return len(given) == len(held) and all(
        a == b or (a >= size and b >= size) for a, b in zip(given, held, strict=True)
    )


def held_of(placed: Numbers, length: int, size: int) -> Numbers:
    """The indices that a rank with `length` of them holds: those that a cut gives it, without padding if
    that is more, as after `fully_shard`.
    """
    return tuple(each for each in placed if each < size) if length < len(placed) else placed


def candidates(
    size: int,
    length: int,
    blocks: Sequence[int],
    cut: Mapping[str, int],
    parts: Sequence[Sequence[int]],
) -> Iterator[Dimension]:
    """Cuts of a dimension of `size` over the axes of `cut` that give each rank at most `length` indices, the simplest first.

    The indices of a rank are one range, a zigzag, one range in each of `blocks` equal blocks, or ranges of the lengths in one of `parts`.
    """
    if not cut:
        yield Dimension(size)
        return
    ranks = prod(cut.values())
    for axes in permutations(cut):
        splits = tuple(map(Split, axes))
        whole = length * ranks
        if whole > size:
            for unit in (*PADDED, length):
                if -(-size // (unit * ranks)) * unit * ranks == whole:
                    yield Dimension(size, (*((unit,) if unit > 1 else ()), *axes), splits)
                    break
            continue
        yield Dimension(size, (), splits)
        for zigzag in range(len(axes)):
            yield Dimension(
                size, (), (*splits[:zigzag], Split(axes[zigzag], "zigzag"), *splits[zigzag + 1 :])
            )
        for outer in blocks:
            if outer > 1 and size % outer == 0:
                inner = Dimension(size // outer, (), splits)
                yield Dimension(Product((Dimension(outer), inner)))
        if size == whole:
            for lengths in parts:
                cuts = (Dimension(each * ranks, (), splits) for each in lengths)
                yield Dimension(Sum(tuple(Product((each,)) for each in cuts)))


def _runs(numbers: Sequence[int]) -> Iterator[int]:
    """The length of each run of consecutive indices."""
    begin = 0
    for end in range(1, len(numbers) + 1):
        if end == len(numbers) or numbers[end] != numbers[end - 1] + 1:
            yield end - begin
            begin = end


def _why(number: int, held: Mapping[int, Numbers], size: int, cut: Sequence[str]) -> str:
    lengths = sorted({len(each) for each in held.values()})
    if len(lengths) > 1:
        said = " and ".join(map(str, lengths))
        return f"shards of dimension {number} have different lengths, {said} of {size}"
    over = ", ".join(f"`{axis}`" for axis in cut)
    return f"no cut over {over} gives what the ranks hold of dimension {number}"
