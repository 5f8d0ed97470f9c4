"""Counts how long the experts of a router have been without tokens."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import torch


class UnusedExperts:
    """Follows, for each router, the forward passes since each of its experts last got a token."""

    def __init__(self) -> None:
        self._passes: WeakKeyDictionary[Any, torch.Tensor] = WeakKeyDictionary()

    def passes_unused(self, router: Any, tokens: Any) -> torch.Tensor | None:
        """The forward passes of a router, this one included, in which one and the same expert got no token.

        It is that of the expert that has been without tokens for the longest time. `tokens` has the
        number of tokens of each expert, shape [experts], at this pass. The result is a scalar on its
        device. None if it is no such tensor.
        """
        if not isinstance(tokens, torch.Tensor) or tokens.ndim != 1 or not len(tokens):
            return None
        with torch.no_grad():
            passes = torch.where(tokens > 0, 0, self._passes.get(router, 0) + 1)
        self._passes[router] = passes
        return passes.max()
