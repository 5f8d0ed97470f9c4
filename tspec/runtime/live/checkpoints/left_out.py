"""Parameters that a state dict left as they were, although an optimizer takes over their state.

A script may remove a part of a state dict on purpose, to train that part anew. Then the optimizer
begins anew with it, too. If the optimizer continues with the moments of a parameter, its values
belong to the same checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from tspec.runtime.live.checkpoints.saved import without_loaded
from tspec.runtime.live.entities.kind import asked
from tspec.runtime.live.entities.modules import state_of
from tspec.runtime.live.identity import IdentityMap, IdentitySet


class LeftOutParameters:
    """The parameters that no state dict had when their model was loaded."""

    def __init__(self) -> None:
        self._loaded: IdentitySet[torch.Tensor] = IdentitySet()
        """Parameters that some state dict had."""
        self._left: IdentityMap[torch.Tensor, list[tuple[str, int]]] = IdentityMap(list)
        """Name and version of a parameter that was left out."""

    def loaded(self, module: nn.Module, missing: Sequence[str]) -> None:
        """A module has loaded a state dict without some names."""
        own = dict(state_of(module))
        left = set(without_loaded(module, missing))
        for name, tensor in own.items():
            if name not in left:
                self._loaded.add(tensor)
        for name in left & own.keys():
            if not own[name].is_inference():
                self._left.of(own[name])[:] = [(name, own[name]._version)]

    def values_left_out(self, optimizer: Any, result: object = None) -> list[str]:
        """The names of the parameters whose state an optimizer has, and whose values were left out
        and are those from before.

        `result` is what loading its state returned: the field is read after it.
        """
        states = asked(optimizer, "state")
        if not isinstance(states, Mapping):
            return []
        return sorted(
            name
            for tensor, state in states.items()
            if isinstance(tensor, torch.Tensor) and state and tensor not in self._loaded
            for name, version in self._left.of(tensor)
            if tensor._version == version
        )
