"""Parameters that hold a copy of trained ones: those of a target network, an average or a teacher."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tspec.runtime.edges import Missing
from tspec.runtime.live.features import local_part
from tspec.runtime.live.identity import IdentitySet
from tspec.runtime.live.sampling import UPDATES
from tspec.runtime.live.updates.projected import ReadFeatures


class CopiedParameters:
    """Compares each parameter that no optimizer holds with the trained parameters that it may copy."""

    def __init__(self, features: ReadFeatures) -> None:
        self._features = features
        self._copied: IdentitySet[torch.Tensor] = IdentitySet()
        self._count = 0

    def __contains__(self, parameter: torch.Tensor) -> bool:
        """True if the parameter ever had the values of a trained parameter at the start of an
        update.
        """
        return parameter in self._copied

    def alive(self) -> list[torch.Tensor]:
        """All of these parameters that still exist."""
        return self._copied.alive()

    def is_due(self) -> bool:
        """Count an update that begins; True if its parameters are to be compared."""
        self._count += 1
        return UPDATES.takes(self._count)

    def before_update(self, copies: Sequence[tuple[torch.Tensor, Sequence[torch.Tensor]]]) -> None:
        """An update begins: no optimizer holds these; beside each stand those that are trained, in any precision."""
        pairs = [(each, of) for each, of in copies if each not in self._copied]
        digests = self._digests([each for each, _ in pairs])
        rounded = {
            (id(one), each.dtype): _rounded(one, each.dtype) for each, of in pairs for one in of
        }
        trained = dict(zip(rounded, self._digests(list(rounded.values())), strict=True))
        for (each, of), digest in zip(pairs, digests, strict=True):
            if not isinstance(digest, Missing) and any(
                trained[id(one), each.dtype] == digest for one in of
            ):
                self._copied.add(each)

    def _digests(self, tensors: Sequence[torch.Tensor | None]) -> list[object]:
        rows = self._features(tensors, ("digest",)) if tensors else ()
        return [row.get("digest", Missing.NOT_RECORDED) for row in rows]


def _rounded(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor | None:
    """The local part, in another precision; None if it cannot be read."""
    part = local_part(tensor)
    return None if part is None else part.to(dtype)
