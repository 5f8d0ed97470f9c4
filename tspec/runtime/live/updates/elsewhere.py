"""Parameters that another rank updates: they change, although no optimizer of this process holds
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch

from tspec.runtime.edges import Missing
from tspec.runtime.live.identity import IdentitySet
from tspec.runtime.live.sampling import UPDATES
from tspec.runtime.live.updates.projected import ReadFeatures


class ElsewhereUpdatedParameters:
    """Compares parameters that no optimizer of this process holds between the beginnings of two
    updates.

    If another rank updates them, the new values arrive after that rank's update, so they differ at
    the next beginning.
    """

    def __init__(self, features: ReadFeatures) -> None:
        self._features = features
        self._moved: IdentitySet[torch.Tensor] = IdentitySet()
        self._stayed: IdentitySet[torch.Tensor] = IdentitySet()
        self._counts: dict[int, int] = {}
        """The updates of each optimizer, by its number."""
        self._found: dict[int, dict[int, object]] = {}
        """The digests where the latest update of each optimizer began, by the ids of parameters."""

    def of(self, parameter: torch.Tensor) -> bool | Missing:
        """True if the parameter has ever moved. Not recorded before the second update."""
        if parameter in self._moved:
            return True
        return False if parameter in self._stayed else Missing.NOT_RECORDED

    def is_due(self, optimizer: int) -> bool:
        """Count an update that begins; True if its parameters are to be compared, which is so for
        pairs of consecutive updates.
        """
        count = self._counts[optimizer] = self._counts.get(optimizer, 0) + 1
        return UPDATES.takes_with_next(count)

    def before_update(self, optimizer: int, parameters: Sequence[torch.Tensor]) -> None:
        """An update begins: these are trainable and have gradients, and no optimizer of this process holds them."""
        before, found = self._found.get(optimizer, {}), {}
        rows = self._features(parameters, ("digest",)) if parameters else ()
        for parameter, row in zip(parameters, rows, strict=True):
            key, digest = id(parameter), row.get("digest", Missing.NOT_RECORDED)
            if isinstance(digest, Missing):
                continue
            found[key] = digest
            if key in before:
                (self._stayed if before[key] == digest else self._moved).add(parameter)
        self._found[optimizer] = found

    def forget(self, optimizers: Iterable[int]) -> None:
        """These optimizers are gone."""
        for each in optimizers:
            self._found.pop(each, None)
            self._counts.pop(each, None)
