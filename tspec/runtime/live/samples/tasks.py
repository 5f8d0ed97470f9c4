"""Signs of a new task: inputs that are larger, and labels that no step had before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn

from tspec.runtime.live.features import local_part
from tspec.runtime.live.identity import IdentityMap
from tspec.runtime.live.models import unwrapped

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
    enlargements: int = 0

    def gets(self, size: torch.Size) -> None:
        """The model gets an input of this size, `[samples, ...]`."""
        largest = self.largest
        if largest is None or len(size) != len(largest):
            self.largest, self.steady = size, 1
        elif any(new > old for new, old in zip(size, largest, strict=True)):
            self.enlargements += self.steady >= STEADY
            self.largest = torch.Size(map(max, size, largest))
            self.steady = 1
        elif size[1:] == largest[1:]:
            self.steady += 1
        else:
            self.steady = 0


class EnlargedInputs:
    """Counts how often the training of a model goes on with larger inputs."""

    def __init__(self) -> None:
        self._sizes: IdentityMap[nn.Module, _Sizes] = IdentityMap(_Sizes)

    def gives(self, module: nn.Module, inputs: Sequence[object]) -> None:
        """A training pass gives a model its inputs; the first tensor counts."""
        for given in inputs:
            if isinstance(given, torch.Tensor):
                self._sizes.of(unwrapped(module)).gets(given.shape)
                return

    def input_enlargements(self, module: nn.Module) -> int:
        """How often the inputs became larger than all before, after `STEADY` passes of one size."""
        return self._sizes.of(unwrapped(module)).enlargements


@dataclass(frozen=True, slots=True)
class _Known:
    """The classes that losses have had, with one more for labels that do not count, and the largest
    fraction of new labels in the losses before, which fades.
    """

    classes: torch.Tensor
    usual: torch.Tensor


class NewLabels:
    """Compares the labels of each loss with those of all losses before."""

    def __init__(self) -> None:
        self._known: dict[tuple[torch.device, int], _Known] = {}

    @torch.no_grad()
    def new_labels(self, logits: object, target: object) -> torch.Tensor:
        """One number: 1 if at least three in ten labels are new, and in the losses before few were.
        Otherwise 0, also without a graph, of probabilities and of more than `CLASSES` classes.
        Nothing waits for the device.

        `logits` are `[n, classes, ...]`, `target` is `[n, ...]`.
        """
        if not isinstance(logits, torch.Tensor) or not isinstance(target, torch.Tensor):
            return torch.zeros(())
        learns = logits.requires_grad and not target.is_floating_point()
        labels = local_part(target) if learns else None
        classes = logits.shape[1] if logits.dim() > 1 else CLASSES + 1
        if labels is None or not labels.numel() or classes > CLASSES:
            return torch.zeros(())
        known = self._known_of(labels.device, classes)
        rows = labels.long().where((labels >= 0) & (labels < classes), classes)
        new = 1 - known.classes[rows].mean()
        jumps = (new >= _NEW) & (known.usual < _USUAL)
        known.classes[rows] = 1.0
        known.usual.mul_(_FORGETS).copy_(torch.maximum(known.usual, new))
        return jumps.float()

    def _known_of(self, device: torch.device, classes: int) -> _Known:
        """What is known of losses of so many classes. The first labels are all new, and no sign."""
        place = (device, classes)
        if place not in self._known:
            seen = torch.zeros(classes + 1, device=device)
            seen[classes] = 1.0
            self._known[place] = _Known(seen, torch.ones((), device=device))
        return self._known[place]
