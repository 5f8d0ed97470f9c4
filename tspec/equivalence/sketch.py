"""A few hundred numbers of a tensor, from which norms of the tensor, of sums and of differences are estimated.

A sparse Johnson-Lindenstrauss transform, in the block form of count sketches: each element is added, with a random
sign, to a random number of each of `BLOCKS` blocks. Signs and places are functions of the tensor's name and of the
place in the full tensor, so sketches of shards and of summands add up to the sketch of the full tensor. The squared
norm of a sketch is, on average over names, that of the tensor, with a standard error of at most sqrt(2 / NUMBERS) of
it. With several blocks two large elements that meet in one spoil a part of the estimate only (Charikar, Chen,
Farach-Colton: Finding frequent items in data streams, 2002; Kane, Nelson: Sparser Johnson-Lindenstrauss transforms,
2014; the variance is that of Alon, Matias, Szegedy: The space complexity of approximating the frequency moments,
1996). A tensor of no more elements is its own sketch, without an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod, sqrt

import torch
from torch import Tensor

from tspec.equivalence.cut import Cut
from tspec.equivalence.generator import bits, key

NUMBERS = 512
"""Numbers of a sketch: a power of 2."""
BLOCKS = 4
"""So many times each element is in a sketch: 4, as it takes 16 of 64 random bits, and the root is exact."""
CERTAINTY = 4.0
"""By so many standard errors an estimate has to exceed what is tolerated, which is an estimate too."""
_BLOCK = NUMBERS // BLOCKS
_FOR = 0
"""The seed of signs and places."""


def length(full: tuple[int, ...]) -> int:
    """How many numbers the sketch of a tensor of shape `full` has."""
    return min(prod(full), NUMBERS)


def standard_error(full: tuple[int, ...]) -> float:
    """The relative standard error of a norm that is estimated from a sketch, at most: half that of its square."""
    return sqrt(2 / NUMBERS) / 2 if prod(full) > NUMBERS else 0.0


def margin(full: tuple[int, ...]) -> float:
    """By what part a tolerance is raised, so that two estimates do not exceed each other by their errors."""
    return CERTAINTY * sqrt(2) * standard_error(full)


def rounding(full: tuple[int, ...]) -> float:
    """How far sketches of one tensor may be apart, relatively, since their sums were made in other orders."""
    return torch.finfo(torch.float64).eps * max(1.0, sqrt(BLOCKS * prod(full) / NUMBERS))


def sketch(name: str, cut: Cut, tensor: Tensor) -> Tensor:
    """What a piece of the tensor `name` adds to its sketch: float64 of `length(cut.full)`, on the tensor's device.

    `tensor` has the shape of `cut`; its padding counts for nothing.
    """
    positions, elements = cut.positions(tensor.device).flatten(), tensor.detach().flatten()
    found = torch.zeros(length(cut.full), dtype=torch.float64, device=tensor.device)
    is_itself = prod(cut.full) <= NUMBERS
    of = key(_FOR, "sketch", name)
    blocks = torch.arange(0, NUMBERS, _BLOCK, dtype=torch.int32, device=tensor.device)[:, None]
    for part in _parts(elements):
        at = positions[part]
        held = elements[part].double().masked_fill(at < 0, 0.0)
        if is_itself:
            found.index_add_(0, at.clamp(min=0), held)
            continue
        random = bits(of, at).view(torch.int16).view(-1, BLOCKS).t().contiguous()
        signed = held / sqrt(BLOCKS) * (1 - 2 * (random & 1)).double()
        places = (random >> 1 & (_BLOCK - 1)).int() + blocks
        found.index_add_(0, places.flatten(), signed.flatten())
    return found


def digest(tensor: Tensor) -> int:
    """64 bits of all elements, whatever the order in which they are added: replicas that have others differ."""
    total = torch.zeros((), dtype=torch.int64, device=tensor.device)
    elements = tensor.detach().flatten()
    for part in _parts(elements):
        held = elements[part].double() + 0.0  # -0.0 is 0.0
        places = torch.arange(part.start, part.start + len(held), device=tensor.device)
        total += bits(0, held.view(torch.int64) ^ bits(1, places)).sum()
    return int(total)


def _parts(elements: Tensor) -> Iterator[slice]:
    """Parts that bound the memory; those of a CPU fit its cache."""
    size = 1 << (15 if elements.device.type == "cpu" else 22)
    return (slice(first, first + size) for first in range(0, len(elements), size))
