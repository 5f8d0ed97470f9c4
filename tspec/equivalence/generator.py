"""Numbers of a tensor from a seed, its canonical name and the place in the full tensor.

The generator is counter-based: the number at a place depends on nothing else, so each rank makes
its own shard, on any device and in any order. All steps are integer or exactly rounded
arithmetic, so the bits are the same everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from math import prod, sqrt

from torch import Tensor

from tspec.equivalence.cut import Cut

# SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
_STEP, _FIRST, _SECOND = (
    value - (1 << 64) for value in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)
VECTOR_SPREAD = 0.1
"""The largest distance from their mean of the elements of a generated vector, such as a bias."""


@dataclass(frozen=True, slots=True)
class InputRange:
    """Where the numbers of an input lie: from `low` on, below `high`; integers if `whole`."""

    low: float
    high: float
    whole: bool = False


def key(seed: int, *names: str) -> int:
    """The key of one tensor's numbers, 64 bits with a sign."""
    said = "\0".join((str(seed), *names)).encode()
    return int.from_bytes(blake2b(said, digest_size=8).digest(), "little", signed=True)


def bits(of: int, positions: Tensor) -> Tensor:
    """64 random bits for each position: int64 of the same shape."""
    mixed = (positions + 1) * _STEP + of
    mixed = (mixed ^ _shifted(mixed, 30)) * _FIRST
    mixed = (mixed ^ _shifted(mixed, 27)) * _SECOND
    return mixed ^ _shifted(mixed, 31)


def uniform(of: int, positions: Tensor) -> Tensor:
    """A number from -1 to 1 (not included) for each position: float64 of the same shape."""
    return _shifted(bits(of, positions), 11).double() * 2.0**-52 - 1


def signs(of: int, positions: Tensor) -> Tensor:
    """1 or -1 for each position: float64 of the same shape."""
    return 1 - 2 * (bits(of, positions) & 1).double()


def weights(seed: int, name: str, cut: Cut, mean: float = 0.0) -> Tensor:
    """A rank's shard of the parameter `name`: float64 of the shard's shape, 0 in its padding.

    Matrices have the variance 1 / fan-in, the fan-in being the elements of one row. Vectors are
    spread around `mean`.
    """
    positions = cut.positions()
    found = uniform(key(seed, "param", name), positions)
    if len(cut.full) > 1:
        found = found * sqrt(3 / max(prod(cut.full[1:]), 1))
    else:
        found = found * VECTOR_SPREAD + mean
    return found.masked_fill(positions < 0, 0.0)


def numbers(seed: int, name: tuple[str, ...], cut: Cut, of: InputRange) -> Tensor:
    """A rank's shard of an input: float64 of the shard's shape, 0 in its padding.

    `name` is the canonical name, followed by the step, the micro-batch and the call.
    """
    positions = cut.positions()
    parts = _shifted(bits(key(seed, "input", *name), positions), 11).double() * 2.0**-53
    found = of.low + (of.high - of.low) * parts
    return (found.floor() if of.whole else found).masked_fill(positions < 0, 0.0)


def _shifted(value: Tensor, by: int) -> Tensor:
    """A shift to the right that fills with zeros."""
    return (value >> by) & ((1 << (64 - by)) - 1)
