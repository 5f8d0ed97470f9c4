"""Finds parameters that a loss is computed with, and that are not trained."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from tspec.runtime.live.features import local_part
from tspec.runtime.live.losses.graph import PASSES, nodes


class LooseParameters:
    """Searches for loose parameters in the graphs of the first losses.


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
        gradients are inputs. None after the first passes.
        """
        if self._passes >= PASSES:
            self._seen.clear()
            return None
        self._passes += 1
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
