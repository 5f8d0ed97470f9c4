"""Finds from data the indices of a one-device run's tensor that reproduce each rank's part of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tspec.infer.layouts.nearest import nearest
from tspec.infer.layouts.shards import Found, Numbers, ShardIndices, Unknown
from tspec.layout.ranks import coordinates
from tspec.resolve.program.sharding import Axes

Tensors = Mapping[str, Tensor]
ENDINGS = (".pt", ".pth", ".bin")


class NoTensors(Exception):
    """A folder or file that holds no state dictionaries. The message says why."""


def read(path: Path) -> Tensors:
    """The tensors of one state dictionary, saved by `torch.save`. Raises NoTensors."""
    try:
        said: Any = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, ValueError, EOFError) as why:
        raise NoTensors(f"{path} cannot be read: {str(why).splitlines()[0]}") from None
    except Exception as why:  # pickle's own, of a file that is no state dictionary
        raise NoTensors(f"{path} is no state dictionary: {type(why).__name__}") from None
    for inside in ("model", "state_dict"):
        if isinstance(said, Mapping) and isinstance(said.get(inside), Mapping):
            said = said[inside]
    found = (
        {name: each for name, each in said.items() if isinstance(each, Tensor)}
        if isinstance(said, Mapping)
        else {}
    )
    if not found:
        raise NoTensors(f"{path} holds no tensors by name")
    return found


def read_ranks(folder: Path) -> tuple[Tensors, ...]:
    """The state dictionaries of ranks 0 to n - 1: files whose names end in the rank. Raises NoTensors."""
    found: dict[int, Path] = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        number = re.search(r"(\d+)$", path.stem)
        if path.suffix in ENDINGS and number is not None:
            rank = int(number[0])
            if rank in found:
                raise NoTensors(f"{found[rank]} and {path} are both of rank {rank}")
            found[rank] = path
    if not found or set(found) != set(range(len(found))):
        raise NoTensors(f"{folder} has no files of ranks 0 to n - 1, such as rank-0.pt")
    return tuple(read(found[rank]) for rank in sorted(found))


def found(full: Tensors, ranks: tuple[Tensors, ...], axes: Axes) -> Found:
    """The shards of the ranks, for each full tensor."""
    names = dict.fromkeys([*full, *(name for each in ranks for name in each)])
    return Found(axes, tuple(_tensor(name, full, ranks, axes) for name in names))


def _tensor(
    name: str, full: Tensors, ranks: tuple[Tensors, ...], axes: Axes
) -> ShardIndices | Unknown:
    whole = full.get(name)
    held = {rank: each[name] for rank, each in enumerate(ranks) if name in each}
    if whole is None:
        return Unknown(name, "the run on one device has no tensor of that name")
    if not held:
        return Unknown(name, "no rank has a tensor of that name")
    if any(each.dim() != whole.dim() for each in held.values()):
        return Unknown(name, "it has another number of dimensions on a rank: a flat shard?")
    shape = tuple(whole.shape)
    all_of = tuple(tuple(range(size)) for size in shape)
    if all(torch.equal(each, whole) for each in held.values()):
        return ShardIndices(name, shape, dict.fromkeys(held, all_of))
    summed = _summed(whole, held, axes)
    if summed:
        return ShardIndices(name, shape, dict.fromkeys(held, all_of), summed)
    if whole.numel() and bool((whole == whole.flatten()[0]).all()):
        return _alike(name, shape, held, axes)
    pieces = {}
    assumed = False
    for rank, each in held.items():
        places = _places(whole, each, axes, rank)
        if places is None:
            return nearest(name, whole, held, axes) or Unknown(name, _no_piece(whole, held, rank))
        pieces[rank], told = places
        assumed |= not told
    note = "some rows are alike: taken in order" if assumed else ""
    return ShardIndices(name, shape, pieces, (), note)


def _no_piece(whole: Tensor, held: Mapping[int, Tensor], rank: int) -> str:
    for dim, size in enumerate(whole.shape):
        lengths = sorted({each.shape[dim] for each in held.values()})
        if len(lengths) > 1:
            said = " and ".join(map(str, lengths))
            return f"shards of dimension {dim} have different lengths, {said} of {size}"
    return f"what rank {rank} holds is near no cut of the full tensor"


def _alike(
    name: str, shape: tuple[int, ...], held: Mapping[int, Tensor], axes: Axes
) -> ShardIndices | Unknown:
    """Shards of a tensor whose elements are all equal: assumed to be contiguous over the only axis with that number of ranks."""
    unknown = Unknown(
        name, "all its elements are alike, and do not tell which of them a rank holds"
    )
    mine = {tuple(each.shape) for each in held.values()}
    cut = [dim for dim in range(len(shape)) if any(each[dim] != shape[dim] for each in mine)]
    if len(cut) != 1:
        return unknown
    [dim] = cut
    longest = max(each[dim] for each in mine)
    over = [axis for axis, size in axes if -(-shape[dim] // size) == longest]
    if len(over) != 1:
        return unknown
    pieces = {}
    for rank, each in held.items():
        start = coordinates(axes, rank)[over[0]] * longest
        length = each.shape[dim]
        if length not in (longest, max(0, min(longest, shape[dim] - start))):
            return unknown
        numbers = [tuple(range(size)) for size in shape]
        numbers[dim] = tuple(range(start, start + length))
        pieces[rank] = tuple(numbers)
    return ShardIndices(name, shape, pieces, (), "all elements are alike: taken for contiguous")


def _summed(whole: Tensor, held: Mapping[int, Tensor], axes: Axes) -> tuple[str, ...]:
    """The axis over which the ranks' tensors add up to the full tensor, if there is one."""
    if any(each.shape != whole.shape for each in held.values()) or not whole.is_floating_point():
        return ()
    for axis, size in axes:
        sums: dict[tuple[tuple[str, int], ...], Tensor] = {}
        for rank, each in held.items():
            where = coordinates(axes, rank)
            others = tuple((name, at) for name, at in where.items() if name != axis)
            sums[others] = sums.get(others, torch.zeros_like(whole, dtype=torch.float64)) + each
        tolerance = 16 * torch.finfo(whole.dtype).eps
        if size > 1 and all(
            torch.allclose(each, whole.double(), rtol=tolerance, atol=tolerance)
            for each in sums.values()
        ):
            return (axis,)
    return ()


def _places(
    whole: Tensor, piece: Tensor, axes: Axes, rank: int
) -> tuple[tuple[Numbers, ...], bool] | None:
    """The indices of each dimension that give the shard, and whether they are the only ones.

    Cut dimensions are found one after the other: by the rows of the full tensor, or, where several
    dimensions are cut, by contiguous shards.
    """
    shape, mine = tuple(whole.shape), tuple(piece.shape)
    cut = [dim for dim in range(len(shape)) if shape[dim] != mine[dim]]
    if not cut:
        cut = [dim for dim in range(len(shape)) if not torch.equal(whole, piece)][:1]
    numbers = [tuple(range(size)) for size in shape]
    if len(cut) == 1:
        found = _rows(whole.movedim(cut[0], 0), piece.movedim(cut[0], 0))
        if found is None:
            return None
        numbers[cut[0]] = found[0]
        return tuple(numbers), found[1]
    return _contiguous(whole, piece, cut)


def _rows(whole: Tensor, piece: Tensor) -> tuple[Numbers, bool] | None:
    """The rows of the full tensor that a shard contains. Rows beyond them are padding.

    The second value is true if each row occurs once in the full tensor. Otherwise rows are counted
    from the first one that fits.
    """
    places: dict[bytes, list[int]] = {}
    for number, row in enumerate(whole.reshape(len(whole), -1)):
        places.setdefault(_key(row), []).append(number)
    found: list[int] = []
    told = True
    for row in piece.reshape(len(piece), -1):
        there = places.get(_key(row))
        if there is None:
            found.append(len(whole) + len(found))
            continue
        following = found[-1] + 1 if found else -1
        told &= len(there) == 1
        found.append(following if following in there else there[0])
    padding = [each >= len(whole) for each in found]
    if (found and all(padding)) or padding != sorted(padding):
        return None
    return tuple(found), told


def _key(row: Tensor) -> bytes:
    return bytes(row.contiguous().view(torch.uint8).numpy().tobytes())


def _contiguous(
    whole: Tensor, piece: Tensor, cut: list[int]
) -> tuple[tuple[Numbers, ...], bool] | None:
    """The place of a shard that is one block of the full tensor."""
    steps = [piece.shape[dim] if dim in cut else whole.shape[dim] for dim in range(whole.dim())]
    blocks = [range(0, size, step) for size, step in zip(whole.shape, steps, strict=True)]
    fitting = []
    for start in torch.cartesian_prod(*(torch.tensor(each) for each in blocks)).reshape(
        -1, whole.dim()
    ):
        at = tuple(
            slice(int(first), int(first) + step) for first, step in zip(start, steps, strict=True)
        )
        if torch.equal(whole[at], piece):
            fitting.append(at)
    if not fitting:
        return None
    first = fitting[0]
    return tuple(tuple(range(each.start, each.stop)) for each in first), len(fitting) == 1
