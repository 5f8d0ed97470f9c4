"""The common factor by which a script scales all gradients between the last backward pass and the
update, as clipping does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import torch
from torch.nn import functional as F

from tspec.runtime.live.features import local_part
from tspec.runtime.live.placed import is_partial
from tspec.runtime.live.sampling import UPDATES

WATCHED = 16
"""The number of an optimizer's parameters that are compared, the largest ones."""
SAMPLED = 128
"""The number of elements of one gradient that are kept, on its device."""
FEW = 8
"""The least number of nonzero elements in a sample. With fewer, any change is nearly a factor."""
ROUNDING = 4
"""The largest rounding error, in units in the last place."""
ALIKE = 0.01
"""Factors of several parameters that differ by less are one."""


@dataclass(slots=True)
class _SampledGradients:
    """Samples of the gradients of one optimizer."""

    count: int = 0
    """The optimizer's updates so far."""
    watched: list[torch.Tensor] = field(default_factory=list)
    held: int = -1
    """The number of parameters that the optimizer held when `watched` was chosen."""
    passes: int = 0
    """The backward passes since the last update."""
    samples: dict[int, torch.Tensor] = field(default_factory=dict)
    """Id of a parameter -> the sample of its gradient at the end of the last backward pass: `[n]`.
    """
    factor: float = 1.0
    """The gradients of the latest update divided by those samples."""
    sums: torch.Tensor | None = None
    """The sum of all samples, and the sum of these elements in the latest update: `[2]`, on their device."""


class GradientFactors:
    """Compares gradients at the beginning of an update with those at the end of the last backward
    pass before it.

    `first`: tells whether the first pass of an update is sampled too, and not only those that add to its
    gradients. It is asked at each pass, since a process group may be built late.

    A gradient that is reduced, clamped or noised in between is no multiple of the earlier one, and
    is ignored. If parameters are scaled by different factors (layer-wise rates, norms of their
    own), there is no common factor.
    """

    def __init__(self, first: Callable[[], bool]) -> None:
        self._first = first
        self._optimizers: dict[int, _SampledGradients] = {}
        """Number of the optimizer, as long as it exists -> its sampled gradients."""

    def of(self, optimizer: int) -> float:
        """The factor by which the gradients of its latest update were scaled; 1 if there is no
        common factor.
        """
        known = self._optimizers.get(optimizer)
        return 1.0 if known is None else known.factor

    def sums(self, optimizer: int) -> tuple[float, float] | None:
        """The sum of some elements of the gradients as this rank computed them, and as its latest update
        used them. None where they were not sampled.
        """
        known = self._optimizers.get(optimizer)
        if known is None or known.sums is None:
            return None
        own, used = known.sums.tolist()
        return own, used

    def is_due(self, optimizer: int) -> bool:
        """True if the optimizer's next update is checked."""
        known = self._optimizers.get(optimizer)
        return known is None or UPDATES.takes_with_next(known.count)

    def after_backward(self, optimizer: int, parameters: Sequence[torch.Tensor]) -> None:
        """A backward pass ended. The parameters are those of an optimizer whose next update is
        checked.
        """
        known = self._optimizers.setdefault(optimizer, _SampledGradients())
        known.passes += 1
        if known.passes == 1 and not self._first():
            return
        if known.held != len(parameters):
            known.held = len(parameters)
            floats = [each for each in parameters if each.is_floating_point()]
            known.watched = sorted(floats, key=torch.Tensor.numel, reverse=True)[:WATCHED]
        known.samples = {
            id(each): found for each in known.watched if (found := _sample(each)) is not None
        }

    def before_update(self, optimizer: int) -> None:
        """An update begins."""
        known = self._optimizers.get(optimizer)
        if known is None:
            return
        known.count += 1
        known.passes = 0
        pairs = [
            (was, now)
            for each in known.watched
            if (was := known.samples.get(id(each))) is not None
            and (now := _sample(each)) is not None
            and (now.shape, now.dtype) == (was.shape, was.dtype)
        ]
        known.samples = {}
        known.factor, known.sums = 1.0, None
        if pairs:
            was, now = (_stacked(each) for each in zip(*pairs, strict=True))
            known.factor = _common(_factors(pairs, was, now))
            known.sums = torch.stack((was.sum(), now.sum())) if self._first() else None

    def forget(self, optimizers: Iterable[int]) -> None:
        """These optimizers are gone."""
        for each in optimizers:
            self._optimizers.pop(each, None)


def _sample(parameter: torch.Tensor) -> torch.Tensor | None:
    """Elements spread over the local part of a parameter's gradient: `[n]`. None if there is no
    gradient, or it is not reduced.
    """
    grad = parameter.grad
    if grad is None or grad.layout != torch.strided or is_partial(grad):
        return None
    part = local_part(grad)
    if part is None:
        return None
    flat = part.reshape(-1)
    return flat[:: flat.numel() // SAMPLED | 1][:SAMPLED].clone()


def _factors(
    pairs: Sequence[tuple[torch.Tensor, torch.Tensor]], was: torch.Tensor, now: torch.Tensor
) -> list[float]:
    """The number that all elements of a sample were multiplied with, of each pair of samples where there is one, and enough say so.

    `was` and `now` are the pairs, stacked. The numbers leave the device together.
    """
    limits = [torch.finfo(each.dtype) for each, _ in pairs]
    eps, smallest = (
        was.new_tensor([getattr(each, name) for each in limits]).unsqueeze(1)
        for name in ("eps", "smallest_normal")
    )
    factors = (was * now).sum(1, keepdim=True) / was.square().sum(1, keepdim=True)
    expected = factors * was
    rounding = ROUNDING * eps * (expected.abs() + smallest * factors.clamp(min=1))
    tells = (was != 0).sum(1) >= FEW
    one = ((now - expected).abs() <= rounding).all(1)  # never of gradients that are not finite
    is_factor = tells & one & (factors.squeeze(1) > 0)
    found = torch.stack((factors.squeeze(1), is_factor.double())).tolist()
    return [factor for factor, is_one in zip(*found, strict=True) if is_one]


def _stacked(samples: Sequence[torch.Tensor]) -> torch.Tensor:
    """Samples below one another, filled up with zeros: `[len(samples), SAMPLED]`."""
    device = samples[0].device
    rows = [F.pad(each.to(device, torch.float64), (0, SAMPLED - len(each))) for each in samples]
    return torch.stack(rows)


def _common(factors: Sequence[float]) -> float:
    """The common factor of all parameters. It is 1 if they differ, and for a single parameter,
    which may have a factor of its own.
    """
    if len(factors) < 2 or max(factors) > (1 + ALIKE) * min(factors):
        return 1.0
    mean = sum(factors) / len(factors)
    return 1.0 if abs(mean - 1) <= ALIKE else mean
