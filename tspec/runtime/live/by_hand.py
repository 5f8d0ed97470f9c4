"""Updates that a script makes by hand beside an optimizer that it builds and never steps."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import torch

from tspec.runtime.edges import Missing
from tspec.runtime.live.activities import Activity, Backward, Fetch
from tspec.runtime.live.entities.optimizers import held_by
from tspec.runtime.live.steps import LoopState, lacks_updates

SMALLEST = 8
"""The number of parameters that are read. An update changes nearly all of them, so the smallest ones do."""
FEATURES = ("digest", "shape", "dtype")


class HandUpdates:
    """Reads a few parameters as long as an optimizer exists and none has made an update: when a
    backward pass begins, and at the next batch.

    Only a batch tells a change by hand from a weight that is moved and put back within the step.
    """

    def __init__(
        self,
        optimizers: Callable[[], Mapping[str, Any]],
        features: Callable[[Sequence[Any], tuple[str, ...]], Sequence[Mapping[str, Any]]],
    ) -> None:
        self._optimizers = optimizers
        self._features = features
        self._kept: list[tuple[weakref.ref[torch.Tensor], Mapping[str, Any]]] = []
        """Parameters with their features when the last backward pass began."""

    def look(self, place: LoopState, activity: Activity) -> Activity:
        """The activity. A batch says whether parameters have changed since a backward pass began."""
        if not lacks_updates(place):
            self._kept = []
        elif isinstance(activity, Backward) and not activity.ended:
            held = self._smallest()
            rows = self._features(held, FEATURES)
            self._kept = [(weakref.ref(p), row) for p, row in zip(held, rows, strict=True)]
        elif isinstance(activity, Fetch) and self._kept:
            kept, self._kept = self._kept, []
            return replace(activity, changed=self._has_changed(kept))
        return activity

    def _smallest(self) -> list[torch.Tensor]:
        held = chain.from_iterable(map(held_by, self._optimizers().values()))
        trained = {id(each): each for each in held if each.requires_grad}
        return sorted(trained.values(), key=torch.Tensor.numel)[:SMALLEST]

    def _has_changed(
        self, kept: Sequence[tuple[weakref.ref[torch.Tensor], Mapping[str, Any]]]
    ) -> bool:
        """True if the elements of a parameter have changed. One that was cut or cast is another tensor."""
        alive = [(each, was) for ref, was in kept if (each := ref()) is not None]
        rows = self._features([each for each, _ in alive], FEATURES)
        return any(
            not isinstance(now["digest"], Missing)
            and not isinstance(was["digest"], Missing)
            and now["digest"] != was["digest"]
            and (now["shape"], now["dtype"]) == (was["shape"], was["dtype"])
            for (_, was), now in zip(alive, rows, strict=True)
        )
