"""Signs of a new task: inputs that are larger, and labels that no step had before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from tspec.runtime.live.features import local_part
from tspec.runtime.live.identity import IdentityMap
from tspec.runtime.live.module_tree import unwrapped

STEADY = 20
"""The number of passes of one size after which a larger input is a sign. Lengths that differ from
batch to batch are none.
"""
CLASSES = 1024
"""The labels of more classes are not looked at: batches have new ones for long."""
_NEW = 0.3
"""The fraction of the labels that are new with a task. Others may be those of tasks before."""
_USUAL = 0.1
"""A smaller fraction is usual from step to step."""
_FORGETS = 0.8
"""The factor by which an earlier fraction counts less with each loss: below a tenth after eleven."""


@dataclass(slots=True)
class _Sizes:
    """The sizes of the inputs of one model."""

    largest: torch.Size | None = None
    steady: int = 0
    """The number of passes of one size up to now. A last batch may be smaller."""

    def enlarges(self, size: torch.Size) -> bool:
        """Take the size of the next input, `[samples, ...]`; true if it is larger than all before,
        which were of one size for long.
        """
        largest, steady = self.largest, self.steady
        if largest is None or len(size) != len(largest):
            self.largest, self.steady = size, 1
        elif any(new > old for new, old in zip(size, largest, strict=True)):
            self.largest = torch.Size(map(max, size, largest))
            self.steady = 1
            return steady >= STEADY
        elif size[1:] == largest[1:]:
            self.steady += 1
        else:
            self.steady = 0
        return False


class EnlargedInputs:
    """Tells where the training of a model goes on with larger inputs."""

    def __init__(self) -> None:
        self._sizes: IdentityMap[nn.Module, _Sizes] = IdentityMap(_Sizes)

    def enlarges_inputs(self, module: nn.Module, inputs: Sequence[object]) -> bool:
        """True if a training pass gives a module larger inputs than all before, after `STEADY` passes
        of one size. The first tensor counts, unless it is nested.
        """
        if not torch.is_grad_enabled():
            return False
        first = next((each for each in inputs if isinstance(each, torch.Tensor)), None)
        if first is None or first.is_nested:
            return False
        return self._sizes.of(unwrapped(module)).enlarges(first.shape)


@dataclass(slots=True)
class _Known:
    """The classes that losses have had."""

    had: torch.Tensor
    """1 for each class that a loss had, and for one more, which stands for labels that do not count."""
    usual: torch.Tensor
    """The largest fraction of new labels in the losses before, which fades."""
    losses: int = 0
    all_had: bool = False

    def jumps(self, labels: torch.Tensor) -> torch.Tensor:
        """1 if many of the labels of the next loss are new, and few were in those before; else 0."""
        rows = labels.clamp(-1, len(self.had) - 1)
        new = 1 - self.had[rows].mean()
        jumps = (new >= _NEW) & (self.usual < _USUAL)
        self.had[rows] = 1.0
        self.usual = torch.maximum(self.usual * _FORGETS, new)
        self.losses += 1
        if self.losses & (self.losses - 1) == 0:  # seldom, since it waits for the device
            self.all_had = bool(self.had.all())
        return jumps.float()


class NewLabels:
    """Compares the labels of each loss with those of all losses before."""

    def __init__(self) -> None:
        self._known: dict[tuple[torch.device, int], _Known] = {}

    @torch.no_grad()
    def new_labels(self, logits: object, target: object) -> torch.Tensor | None:
        """One number: 1 if at least three in ten labels are new, and in the losses before few were;
        otherwise 0. None without a graph, of probabilities, of more than `CLASSES` classes, and once
        all of them had a loss.

        `logits` are `[n, classes, ...]`, `target` is `[n, ...]`.
        """
        if not isinstance(logits, torch.Tensor) or not isinstance(target, torch.Tensor):
            return None
        if not logits.requires_grad or logits.dim() < 2 or target.is_floating_point():
            return None
        classes = logits.shape[1]
        known = self._known.get((target.device, classes))
        if classes > CLASSES or (known is not None and known.all_had):
            return None
        labels = local_part(target)
        if labels is None or not labels.numel():
            return None
        if known is None:
            known = self._known[target.device, classes] = _begin(target.device, classes)
        return known.jumps(labels.long())


def _begin(device: torch.device, classes: int) -> _Known:
    """Before the first loss of so many classes. Its labels are all new, and no sign of a task."""
    had = torch.zeros(classes + 1, device=device)
    had[classes] = 1.0
    return _Known(had, torch.ones((), device=device))
