"""Estimate norms of a tensor, of sums and of differences from a few hundred numbers.

A sparse Johnson-Lindenstrauss transform, in the block form of count sketches: each element is
added, with a random sign, to a random number of each of `BLOCKS` blocks. Signs and places are
functions of the tensor's name and of the place in the full tensor, so sketches of shards and of
summands add up to the sketch of the full tensor. The mean of the squared norm of a sketch over
names is the squared norm of the tensor, with a relative standard error of at most about sqrt(2 /
NUMBERS). With several blocks, two large elements that meet in one block spoil only a part of the
estimate (Charikar, Chen, Farach-Colton: Finding frequent items in data streams, 2002; Kane, Nelson:
Sparser Johnson-Lindenstrauss transforms, 2014; the variance is from Alon, Matias, Szegedy: The
space complexity of approximating the frequency moments, 1996). A tensor with no more elements than
the sketch is its own sketch, without an error.

Places are drawn for rows of `ROW` consecutive elements of the full tensor: a row goes to one of the
parts of a block, rotated. So two elements of a row never meet. Two elements of different rows meet
with the same probability as if each drew its own place, which is all that the variance needs. Rows
are added as vectors, without an index for each element. An element has one sign in all blocks: a
pair that meets in two blocks adds to the variance once more, by the part (BLOCKS - 1) / (NUMBERS /
BLOCKS) of it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import gcd, prod, sqrt

import torch
from torch import Tensor

from tspec.equivalence.cut import Cut, whole
from tspec.equivalence.generator import bits, key

NUMBERS = 512
"""Numbers of a sketch: a power of 2."""
BLOCKS = 4
"""The number of times that each element is in a sketch. Its square root is exact."""
ROW = 16
"""Elements with one draw: 16 signs and, for 4 blocks, 4 * 7 bits of places are in 64 random bits."""
CERTAINTY = 4.0
"""The number of standard errors by which an estimate must exceed the tolerance, which is an
estimate too.
"""
_BLOCK = NUMBERS // BLOCKS
_FOR = 0
"""The seed of signs and places."""


def length(full: tuple[int, ...]) -> int:
    """The number of elements in the sketch of a tensor of shape `full`."""
    return min(prod(full), NUMBERS)


def standard_error(full: tuple[int, ...]) -> float:
    """An upper bound of the relative standard error of a norm estimated from a sketch: half that of
    its square.
    """
    if prod(full) <= NUMBERS:
        return 0.0
    return sqrt(2 / NUMBERS * (1 + (BLOCKS - 1) / _BLOCK)) / 2


def margin(full: tuple[int, ...]) -> float:
    """The fraction by which a tolerance is raised, so that errors of two estimates alone do not exceed it."""
    return CERTAINTY * sqrt(2) * standard_error(full)


def rounding(full: tuple[int, ...]) -> float:
    """The relative distance of sketches of one tensor under different orders of summation."""
    return torch.finfo(torch.float64).eps * max(1.0, sqrt(BLOCKS * prod(full) / NUMBERS))


@dataclass(frozen=True, slots=True)
class Draw:
    """Signs and places of a rank's shard of a tensor, in the longest runs of rows that stay
    contiguous.

    `signs` are 1 or -1: int8 of (runs, width). `places` has, for each block, the row of its sums
    to which a run is added, the last row for padding: int64 of (BLOCKS, runs).
    """

    signs: Tensor
    places: Tensor


@dataclass(slots=True)
class Draws:
    """Draws that are kept from step to step, by name and cut, up to `room` bytes: a tensor beyond is drawn each time."""

    room: int = 1 << 28
    _kept: dict[tuple[str, Cut], Draw] = field(default_factory=dict)
    _places: dict[tuple[Cut, torch.device], Tensor] = field(default_factory=dict)

    def draw(self, name: str, cut: Cut, device: torch.device) -> Draw:
        """The draw of a tensor, on the tensor's device."""
        kept = self._kept.get((name, cut))
        if kept is not None and kept.signs.device == device:
            return kept
        made = _drawn(name, cut, device)
        size = made.signs.nbytes + made.places.nbytes
        if kept is None and size <= self.room:
            self.room -= size
            self._kept[name, cut] = made
        return made

    def places(self, cut: Cut, device: torch.device) -> Tensor:
        """The places of a shard of a tensor that is its own sketch, flattened, -1 for padding."""
        kept = self._places.get((cut, device))
        if kept is None:
            kept = self._places[cut, device] = cut.positions(device).flatten()
        return kept


def sketch(name: str, cut: Cut, tensor: Tensor, draws: Draws) -> Tensor:
    """The part of a sketch that a shard of the tensor `name` contributes: float64 of
    `length(cut.full)`, on the tensor's device.

    `tensor` has the shape of `cut`; its padding counts for nothing.
    """
    elements = tensor.detach().flatten()
    if prod(cut.full) <= NUMBERS:
        if cut == whole(cut.full):
            return elements.to(torch.float64, copy=True)
        positions = draws.places(cut, tensor.device)
        found = torch.zeros(prod(cut.full), dtype=torch.float64, device=tensor.device)
        held = elements.double().masked_fill(positions < 0, 0.0)
        return found.index_add_(0, positions.clamp(min=0), held)
    of = draws.draw(name, cut, tensor.device)
    number, width = of.signs.shape
    runs = elements.view(number, width)
    sums = torch.zeros(
        *(BLOCKS, _BLOCK * ROW // width + 1, width), dtype=torch.float64, device=tensor.device
    )
    at_once = (1 << (15 if tensor.device.type == "cpu" else 22)) // width  # fits a CPU's cache
    for first in range(0, number, at_once):
        part = slice(first, first + at_once)
        signed = runs[part].double() * of.signs[part]
        for block in range(BLOCKS):
            sums[block].index_add_(0, of.places[block, part], signed)
    return _turned(sums[:, :-1].reshape(BLOCKS, _BLOCK // ROW, ROW, ROW))


def _drawn(name: str, cut: Cut, device: torch.device) -> Draw:
    """The signs and places of a tensor that is not its own sketch."""
    width, runs = _runs_of_rows(cut)
    at = runs.positions(device).flatten()
    in_row = ROW // width
    random = bits(key(_FOR, "sketch", name), at // in_row)[:, None]
    column = (at % in_row)[:, None]
    which = torch.arange(width, dtype=torch.int16, device=device)
    word = random.view(torch.int16)[:, :1]  # its lowest bits
    signs = 1 - 2 * (word >> (which + column.short() * width) & 1)
    draws = torch.arange(16, 16 + 7 * BLOCKS, 7, device=device)
    places = (random >> draws & (_BLOCK - 1)) * in_row + column
    places = places.masked_fill(at[:, None] < 0, _BLOCK * in_row)
    return Draw(signs.to(torch.int8), places.t().contiguous())


def _runs_of_rows(cut: Cut) -> tuple[int, Cut]:
    """The number of elements of a row that are always held together, and the cut in units of such
    runs.

    Padding is not in a run with other elements.
    """
    *outer, (size, runs) = zip(cut.full, cut.runs, strict=True)
    while outer and runs == (
        (0, size, 0, 1),
    ):  # all of a dimension: the one before counts its elements
        *outer, (before, its) = outer
        runs = tuple((s * size, length * size, by * size, n) for s, length, by, n in its)
        size *= before
    ends = (each for start, length, by, n in runs for each in (start, length, by * (n > 1)))
    width = gcd(ROW, size, *ends, *(cut.flat or ()))
    shorter = tuple((s // width, length // width, by // width, n) for s, length, by, n in runs)
    flat = None if cut.flat is None else (cut.flat[0] // width, cut.flat[1] // width)
    full = (*(size for size, _ in outer), size // width)
    return width, Cut(full, (*(runs for _, runs in outer), shorter), flat)


def _turned(sums: Tensor) -> Tensor:
    """The sketch that sums of rows make: `sums` has blocks, their parts, rotations, and the columns of a row."""
    blocks, parts, _, _ = sums.shape
    twice = torch.cat([sums, sums], -1)
    size = 2 * ROW * ROW
    strides = (parts * size, size, 2 * ROW - 1, 1)  # each next rotation begins one column earlier
    turned = twice.as_strided((blocks, parts, ROW, ROW), strides, ROW)
    return turned.sum(2).flatten() / sqrt(BLOCKS)
