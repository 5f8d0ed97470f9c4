"""Targets of a loss that the model is given among its inputs."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

import torch

from tspec.runtime.live.features import local_part

LOSSES = 16
"""The number of losses whose targets are looked for. Later ones get their targets in the same way."""
ENOUGH = 32
"""The least number of samples: columns of fewer may be equal by chance."""
WIDEST = 4096
"""The largest number of values of a sample."""
PART = 4
"""Targets that are more than one in so many values of the input are a reconstruction."""
MOST = 64
"""The largest number of values of a target."""
_KEPT = 4
"""The number of latest inputs that targets are looked for in."""


class LeakedTargets:
    """Remembers the latest floating inputs of models, `[samples, …]`."""

    def __init__(self) -> None:
        self._inputs: deque[torch.Tensor] = deque(maxlen=_KEPT)
        self._losses = 0

    def gives(self, inputs: Iterable[object]) -> None:
        """A model gets inputs, in a pass with a graph."""
        if self._losses >= LOSSES or not torch.is_grad_enabled():
            return
        for given in inputs:
            if isinstance(given, torch.Tensor) and given.is_floating_point():
                columns = _columns(given)
                if columns is not None and columns.shape[1] <= WIDEST:
                    self._inputs.append(columns)

    @torch.no_grad()
    def leaked_targets(self, target: object, loss: object) -> bool | None:
        """True if each value of the targets `[samples, …]` is, in all samples, one value of the
        input.

        None if no input has these samples, if a value is the same for all samples, without a
        graph, and after the first losses.
        """
        if self._losses >= LOSSES or not isinstance(target, torch.Tensor):
            return None
        if not getattr(loss, "requires_grad", False):
            return None
        self._losses += 1
        wanted = _columns(target[:, None] if target.dim() == 1 else target)
        given = [] if wanted is None else [each for each in self._inputs if _fits(each, wanted)]
        if self._losses >= LOSSES:
            self._inputs.clear()
        if wanted is None or not given or bool((wanted == wanted[:1]).all(0).any()):
            return None
        return any(_contains(each, wanted) for each in given)


def _columns(given: torch.Tensor) -> torch.Tensor | None:
    """The values of each sample, `[samples, values]`; None if they cannot be read or are few."""
    part = None if given.requires_grad or given.dim() < 2 else local_part(given)
    return None if part is None or part.shape[0] < ENOUGH else part.flatten(1)


def _fits(given: torch.Tensor, wanted: torch.Tensor) -> bool:
    same = given.device == wanted.device and given.shape[0] == wanted.shape[0]
    return same and wanted.shape[1] <= min(given.shape[1] // PART, MOST)


def _contains(given: torch.Tensor, wanted: torch.Tensor) -> bool:
    columns = wanted.to(given.dtype).unbind(1)
    return all(bool((given == each[:, None]).all(0).any()) for each in columns)
