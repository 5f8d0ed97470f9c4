"""States of recurrent layers that go from one call of a layer to its next."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from tspec.runtime.live.features import local_part
from tspec.runtime.live.identity import IdentityMap

STATES = 128
"""The number of calls whose states are compared, in each training of a job."""
COMPARED = 16
"""The number of elements of a state that tell it from others, on its device."""


class CarriedStates:
    """Compares the state that a recurrent layer begins with to the one that its last call returned."""

    def __init__(self) -> None:
        self._last: IdentityMap[nn.Module, list[torch.Tensor]] = IdentityMap(list)
        """Layer -> a sample of the state that its last call returned; empty before the first call."""

    def begins_with_last_state(self, layer: nn.Module, given: object, result: object) -> bool:
        """True if a call of `layer` began with the state that its last call returned.

        `given`: None, the hidden state, or (hidden state, cell state). `result`: (outputs, last state).
        """
        last = self._last.of(layer)
        began = _sample(given)
        is_last = bool(last) and began is not None and _are_equal(last[0], began)
        ended = _sample(result[1]) if isinstance(result, tuple) and len(result) == 2 else None
        last[:] = [] if ended is None else [ended]
        return is_last


def _sample(state: object) -> torch.Tensor | None:
    """Elements spread over the hidden state: `[n]`."""
    hidden = state[0] if isinstance(state, Sequence) and state else state
    part = local_part(hidden) if isinstance(hidden, torch.Tensor) else None
    if part is None:
        return None
    flat = part.detach().reshape(-1)
    return flat[:: flat.numel() // COMPARED | 1][:COMPARED].clone()


def _are_equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    """True if two samples are of one state. States of zeros tell nothing."""
    return one.shape == other.shape and bool(one.any()) and torch.equal(one, other)
