"""Noise that a loss has as its target: whether the input of the model contains it.

A denoising model predicts the noise that was added to its input (DDPM, section 3.2).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import torch

from tspec.runtime.live.features import local_part

LOSSES = 16
"""The number of losses whose targets are looked at. Later ones get theirs in the same way."""
LEAST, MOST = 2048, 65_536
"""The least number of elements by which noise is known, and the number that are read."""
ERRORS = 6
"""Statistics that are further from those of noise than so many standard errors are not those of noise."""
_KEPT = 4
"""The number of latest inputs that targets are looked for in."""


class NoisedInputs:
    """Remembers the latest floating inputs of models that the loop calls.

    A loss within the call of a model is not looked at: the model may add the noise itself.
    """

    def __init__(self) -> None:
        self._inputs: deque[torch.Tensor] = deque(maxlen=_KEPT)
        self._losses = 0
        self._inside = False

    def gives(self, inputs: Iterable[object]) -> None:
        """The loop calls a model with tensors."""
        self._inside = True
        if self._losses < LOSSES and torch.is_grad_enabled():
            parts = [_part(each) for each in inputs]
            self._inputs.extend(part for part in parts if part is not None)

    def returns(self) -> None:
        """The call is over."""
        self._inside = False

    @torch.no_grad()
    def lacks_noise(self, target: object, loss: object) -> bool | None:
        """True if the target is normal noise that no input of its shape is correlated with.

        None if the target is something else, if the inputs of this shape are nothing but noise themselves,
        without a graph, and after the first losses.
        """
        if self._inside or self._losses >= LOSSES or not getattr(loss, "requires_grad", False):
            return None
        self._losses += 1
        noise = _part(target)
        given = () if noise is None else [each for each in self._inputs if _is_like(each, noise)]
        if self._losses >= LOSSES:
            self._inputs.clear()
        if noise is None or not given or not _is_noise(_values(noise)):
            return None
        values = [_values(each) for each in given]
        if all(_is_noise(each) for each in values):
            return None
        return not any(_are_correlated(each, _values(noise)) for each in values)


def _part(given: object) -> torch.Tensor | None:
    """The tensor on this rank; None if it has a graph, cannot be read or has few elements."""
    if not isinstance(given, torch.Tensor) or given.requires_grad or not given.is_floating_point():
        return None
    part = local_part(given)
    return None if part is None or part.numel() < LEAST else part


def _is_like(given: torch.Tensor, noise: torch.Tensor) -> bool:
    return given.shape == noise.shape and given.device == noise.device


def _values(part: torch.Tensor) -> torch.Tensor:
    """The first elements, `[elements]`."""
    return part.reshape(-1)[:MOST].double()


def _is_noise(values: torch.Tensor) -> bool:
    """True if elements seem to be drawn from the standard normal distribution, each by itself."""
    count = values.numel()
    next_to_each_other = (values[1:] * values[:-1]).mean()
    moments = torch.stack([values.mean(), values.var() - 1, values.pow(4).mean() - 3])
    spreads = torch.tensor([1.0, 2.0, 96.0, 1.0], device=values.device).sqrt()
    found = torch.cat([moments, next_to_each_other[None]])
    return bool((found.abs() <= ERRORS * spreads / count**0.5).all())


def _are_correlated(given: torch.Tensor, noise: torch.Tensor) -> bool:
    """True if the correlation differs from that of unrelated elements."""
    correlation = torch.corrcoef(torch.stack([given, noise]))[0, 1]
    return bool(correlation.abs() > ERRORS / given.numel() ** 0.5)
