"""Which parameters the values of others were copied to: those of a target network, an average, a teacher."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tspec.runtime.edges import Missing
from tspec.runtime.live.identity import IdentitySet
from tspec.runtime.live.projected import ReadFeatures

FIRST = 20
"""Before each of the first so many updates is looked at what no optimizer holds."""
EVERY = 10
"""After that before every tenth."""


class CopiedParameters:
    """Compares parameters that no optimizer holds with those of their copies that are trained."""

    def __init__(self, features: ReadFeatures) -> None:
        self._features = features
        self._copied: IdentitySet[torch.Tensor] = IdentitySet()
        self._count = 0

    def __contains__(self, parameter: torch.Tensor) -> bool:
        """Whether it ever held the same values as a copy that is trained, where an update began."""
        return parameter in self._copied

    def is_due(self) -> bool:
        """Count an update that begins; True if parameters are to be looked at."""
        self._count += 1
        return self._count <= FIRST or self._count % EVERY == 0

    def before_update(self, copies: Sequence[tuple[torch.Tensor, Sequence[torch.Tensor]]]) -> None:
        """An update begins: these are held by no optimizer, each with its copies that are."""
        pairs = [(each, of) for each, of in copies if each not in self._copied]
        tensors = [tensor for each, of in pairs for tensor in (each, *of)]
        rows = iter(self._features(tensors, ("digest",)) if tensors else ())
        for each, of in pairs:
            digest, *others = [next(rows).get("digest", Missing.NOT_RECORDED) for _ in (each, *of)]
            if not isinstance(digest, Missing) and digest in others:
                self._copied.add(each)
