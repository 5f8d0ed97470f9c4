"""Finds parameters that a loss is computed with, and that are not trained."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from tspec.runtime.live.features import local_part
from tspec.runtime.live.losses.graph import nodes

_FIRST = 16
"""The number of first losses whose graphs are searched."""
_EVERY, _IN_A_ROW = 50, 3
"""Of so many later losses so many in a row are searched: a program may have a second phase, with
another model.
"""


class LooseParameters:
    """Searches for loose parameters in the graphs of the first losses and of some later ones.

    `is_held` says whether a model or an optimizer holds a parameter, `is_attribute` whether a tensor is an attribute of a module.
    """

    def __init__(
        self,
        is_held: Callable[[torch.Tensor], bool],
        is_attribute: Callable[[torch.Tensor], bool],
    ) -> None:
        self._is_held = is_held
        self._is_attribute = is_attribute
        self._passes = 0
        self._seen: dict[int, tuple[weakref.ref[torch.Tensor], torch.Tensor]] = {}
        """The tensors found, with copies of their values in the previous pass."""

    def loose_parameters(self, losses: Any) -> list[torch.Size] | None:
        """The shapes of parameters that neither a model nor an optimizer holds, and that stayed as they were since the pass before.

        A single number with a gradient is a parameter, and so is an attribute of a module, whatever its class. Other tensors with
        gradients are inputs. None in passes that are left out.
        """
        self._passes += 1
        if self._passes > _FIRST and self._passes % _EVERY >= _IN_A_ROW:
            self._seen.clear()
            return None
        shapes = []
        for operation, node in nodes(losses):
            leaf = node.variable if operation == "AccumulateGrad" else None
            if not isinstance(leaf, torch.Tensor) or self._is_held(leaf):
                continue
            is_parameter = isinstance(leaf, nn.Parameter) or leaf.numel() == 1
            if not is_parameter and not self._is_attribute(leaf):
                continue
            part = local_part(leaf)
            if part is None:
                continue
            known = self._seen.get(id(leaf))
            if known is not None and known[0]() is leaf and torch.equal(known[1], part):
                shapes.append(leaf.shape)
            self._seen[id(leaf)] = (weakref.ref(leaf), part.clone())
        return shapes
