"""Bounds the error that a gradient causes in its parameter, from a few numbers about the update.

The relative change of an update is at most that of the gradient, up to its reversal. Elementwise,
this bound needs the update and the gradient. Here the squares of the update are summed by the size
of the gradient, in powers of 2.
"""

from __future__ import annotations

import torch
from torch import Tensor

BINS = 64
_LOWEST = -40
"""The power of 2 at which the second bin begins; the first bin has all smaller gradients."""


def spread(update: Tensor, gradient: Tensor) -> Tensor:
    """The sizes of an update by the sizes of the gradient: float64 of 2 + BINS.

    First the root mean square of the nonzero gradients, then their number, then the sums of the
    update's squares, one for each power of 2 of the gradient. Both tensors have as many elements.
    """
    held, squares = gradient.double().flatten().abs(), update.double().flatten().square()
    number = held.count_nonzero()
    size = held.norm() / number.clamp(min=1).sqrt()
    power = torch.frexp(held / size)[1].long() - 1 - _LOWEST
    at = power.clamp(0, BINS - 1).masked_fill(held == 0, 0)
    sums = torch.zeros(BINS, dtype=torch.float64, device=held.device).index_add_(0, at, squares)
    return torch.cat([torch.stack([size, number.double()]), sums])


def undetermined(spread: Tensor, off: float) -> float:
    """A bound of the Frobenius norm of a parameter's error, where its gradient may be off by the
    norm `off`.

    The error of the gradient is spread evenly over its nonzero elements. In the sum over elements
    that is no less than an error concentrated in larger elements. At most twice too large, since
    all elements of a bin count as its smallest.
    """
    size, number, sums = spread[0], spread[1], spread[2:]
    may = off / number.clamp(min=1).sqrt()
    least = size * 2.0 ** (torch.arange(BINS, dtype=torch.float64) + _LOWEST)
    least[0] = 0.0
    part = torch.where(may < 2 * least, may / least, 2.0)
    return float((sums * part.square()).sum().sqrt())
