"""Parameters that a script changes repeatedly between updates: it clips them, scales them to a
norm, or averages them over ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from tspec.runtime.edges import Missing
from tspec.runtime.live.identity import IdentitySet
from tspec.runtime.live.sampling import Sampling

LOOKS = Sampling(first=6, every=7)
"""The updates of an optimizer after which its new parameters are checked.

Epochs are seldom seven updates long. What begins late is known before a rule of every tenth step looks.
"""
IN_A_ROW = 3
"""The number of consecutive updates after which a changing parameter counts as projected. A change
by mistake, or at the end of an epoch, does not.
"""

ReadFeatures = Callable[[Sequence[Any], tuple[str, ...]], Sequence[Mapping[str, Any]]]
"""Gives the features of some tensors by name. Features of an unreadable tensor are missing."""


@dataclass(slots=True)
class _Updates:
    """The recorded updates of one optimizer. Parameters are identified by their ids."""

    count: int = 0
    returned: dict[int, Any] | None = None
    """The digests of its parameters when the last update returned, if the next one compares them.
    """
    changed: dict[int, int] = field(default_factory=dict)
    """Id of a parameter -> the number of consecutive updates after which it changed."""


class ProjectedParameters:
    """Compares parameters where an update returned with those where the next one of the same optimizer begins."""

    def __init__(self, features: ReadFeatures) -> None:
        self._features = features
        self._projected: IdentitySet[torch.Tensor] = IdentitySet()
        self._updates: dict[int, _Updates] = {}
        """Number of the optimizer, as long as it exists -> its updates."""

    def __contains__(self, parameter: torch.Tensor) -> bool:
        return parameter in self._projected

    def add(self, parameters: Iterable[torch.Tensor]) -> None:
        """The script changes these between updates, again and again."""
        for parameter in parameters:
            self._projected.add(parameter)

    def before_update(self, optimizer: int, parameters: Sequence[torch.Tensor]) -> None:
        """An update begins. The script changed the parameters that differ since the last one."""
        known = self._updates.get(optimizer)
        if known is None or known.returned is None:
            return
        changed: dict[int, int] = {}
        for parameter, digest in zip(parameters, self._digests(parameters), strict=True):
            key = id(parameter)
            if isinstance(digest, Missing) or known.returned.get(key, digest) == digest:
                continue
            changed[key] = known.changed.get(key, 0) + 1
            if changed[key] >= IN_A_ROW:
                self._projected.add(parameter)
        known.returned, known.changed = None, changed
        if IN_A_ROW in changed.values():
            self._add_rest(parameters)

    def _add_rest(self, parameters: Sequence[torch.Tensor]) -> None:
        """Add all parameters of an optimizer if those that are projected hold half of their elements.

        Clipping changes a small parameter late, when one of its elements first reaches the bound.
        """
        projected = sum(each.numel() for each in parameters if each in self._projected)
        if 2 * projected >= sum(each.numel() for each in parameters):
            self.add(parameters)

    def after_update(self, optimizer: int, parameters: Sequence[torch.Tensor]) -> None:
        """An update returned: keep the digests, if the next update compares them.

        Another optimizer that holds some of the parameters finds them as this one leaves them.
        """
        known = self._updates.setdefault(optimizer, _Updates())
        known.count += 1
        undecided = any(number < IN_A_ROW for number in known.changed.values())
        if LOOKS.takes(known.count) or undecided:
            known.returned = self._known_digests(parameters)
        for other in self._updates.values():
            if other is not known and other.returned:
                held = [each for each in parameters if id(each) in other.returned]
                other.returned |= self._known_digests(held) if held else {}

    def _known_digests(self, parameters: Sequence[torch.Tensor]) -> dict[int, Any]:
        """Id of a parameter -> its digest. Parameters that cannot be read are left out."""
        return {
            id(parameter): digest
            for parameter, digest in zip(parameters, self._digests(parameters), strict=True)
            if not isinstance(digest, Missing)
        }

    def forget(self, optimizers: Iterable[int]) -> None:
        """These optimizers are gone."""
        for each in optimizers:
            self._updates.pop(each, None)

    def _digests(self, parameters: Sequence[torch.Tensor]) -> list[Any]:
        rows = self._features(parameters, ("digest",))
        return [row.get("digest", Missing.NOT_RECORDED) for row in rows]
