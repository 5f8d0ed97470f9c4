"""Gradients that two updates use, of one optimizer or of two that hold a parameter: they were not
cleared in between, and backward passes have added to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import torch

from tspec.runtime.live.sampling import UPDATES
from tspec.runtime.live.updates.projected import ReadFeatures


@dataclass(slots=True)
class _UsedGradients:
    """The state of the gradients that the last update of one optimizer used."""

    count: int = 0
    """The optimizer's updates so far."""
    used: list[torch.Tensor] = field(default_factory=list)
    """Parameters whose gradient the last update used and that are not cleared since, as far as a
    pass has checked.
    """
    begun: list[tuple[torch.Tensor, torch.Tensor, int]] = field(default_factory=list)
    """The used parameters that have a gradient when a backward pass begins, with that gradient and
    its version.
    """
    added: dict[int, tuple[torch.Tensor, torch.Tensor]] = field(default_factory=dict)
    """Id -> a used parameter whose gradient a pass has added to, and that gradient."""


class ReusedGradients:
    """Follows gradients from an update to the next one.

    If a gradient was cleared, by any means, the next backward pass finds none, or zeros. Values are
    read only for a gradient that still exists and that no `zero_grad` has cleared. A gradient that
    is assigned anew is another tensor.
    """

    def __init__(self, features: ReadFeatures) -> None:
        self._features = features
        self._updates: dict[int, _UsedGradients] = {}
        """Number of the optimizer, as long as it exists -> its gradients."""

    def of(self, optimizer: int, parameters: Iterable[torch.Tensor]) -> list[torch.Tensor] | None:
        """Those of the parameters that an update has whose used gradients it uses again. None if the
        update is not among those that are looked at.
        """
        before = self._updates.get(optimizer)
        if before is not None and not UPDATES.takes(before.count + 1):
            return None
        added: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        for known in self._updates.values():
            added |= known.added
        candidates = (added[id(each)] for each in parameters if id(each) in added)
        return [each for each, grad in candidates if each.grad is grad]

    def after_update(self, optimizer: int, parameters: Sequence[torch.Tensor]) -> None:
        """An update returned: it has used the gradients of these."""
        known = self._updates.setdefault(optimizer, _UsedGradients())
        known.count += 1
        known.used = list(parameters) if UPDATES.takes(known.count + 1) else []
        known.begun, known.added = [], {}

    def cleared(self, parameters: Iterable[torch.Tensor]) -> None:
        """The gradients of these are cleared."""
        if not self._updates:
            return
        ids = set(map(id, parameters))
        for known in self._updates.values():
            known.used = [each for each in known.used if id(each) not in ids]
            known.added = {key: each for key, each in known.added.items() if key not in ids}

    def before_backward(self) -> None:
        """A backward pass begins."""
        for known in self._updates.values():
            if not known.used:
                continue
            present = [each for each in known.used if each.grad is not None]
            grads = [each.grad for each in present]
            rows = self._features(grads, ("norm",)) if grads else ()
            known.used = [
                each
                for each, row in zip(present, rows, strict=True)
                if _is_positive(row.get("norm"))
            ]
            ids = set(map(id, known.used))
            known.added = {key: each for key, each in known.added.items() if key in ids}
            known.begun = [
                (each, grad, grad._version)
                for each, grad in zip(present, grads, strict=True)
                if id(each) in ids and grad is not None
            ]

    def after_backward(self) -> None:
        """A backward pass is over."""
        for known in self._updates.values():
            known.added |= {
                id(each): (each, grad)
                for each, grad, version in known.begun
                if each.grad is grad and grad._version != version
            }
            known.begun = []

    def forget(self, optimizers: Iterable[int]) -> None:
        """These optimizers are gone."""
        for each in optimizers:
            self._updates.pop(each, None)


def _is_positive(norm: object) -> bool:
    return isinstance(norm, float) and norm > 0
