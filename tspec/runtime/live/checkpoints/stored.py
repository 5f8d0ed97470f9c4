"""Frozen tensors that a file of this run has already: they were saved before, or loaded.

A job that tunes adapters saves the adapters alone, again and again. The base that it leaves out is
not lost: it is in the file that it came from.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from tspec.runtime.live.checkpoints.saved import SavedModel
from tspec.runtime.live.entities.modules import state_of
from tspec.runtime.live.identity import IdentityMap


class StoredTensors:
    """The tensors that were saved or loaded, with the version of their values then."""

    def __init__(self) -> None:
        self._versions: IdentityMap[torch.Tensor, list[int]] = IdentityMap(list)

    def loaded(self, module: nn.Module, state: Mapping[str, Any]) -> None:
        """A module has loaded a state dict."""
        for name, tensor in state_of(module):
            if name in state:
                self._store(tensor)

    def missing_keys(self, saved: list[SavedModel]) -> list[str]:
        """The names that an object that is saved now lacks, without frozen tensors in another file."""
        lost = []
        for each in saved:
            tensors = dict(state_of(each.model))
            missing = {id(tensors[name]) for name in each.missing}
            for tensor in tensors.values():
                if id(tensor) not in missing:
                    self._store(tensor)
            lost += [name for name in each.missing if not self._is_stored(tensors[name])]
        return lost

    def _store(self, tensor: torch.Tensor) -> None:
        if not tensor.is_inference():
            self._versions.of(tensor)[:] = [tensor._version]

    def _is_stored(self, tensor: torch.Tensor) -> bool:
        """True if a file has the tensor, and nothing has changed it since."""
        if tensor.requires_grad or tensor.is_inference():
            return False
        return tensor._version in self._versions.of(tensor)
