"""What is read of routers and dispatchers of tokens to experts."""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import torch

from tspec.runtime.live.entities.kind import asked


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


def sorted_splits(dispatcher: Any) -> torch.Tensor | None:
    """How many tokens of each peer a dispatcher of megatron-core sorts by experts, shape [peers].

    None if it sorts none: it has one expert, or sizes are fixed by a capacity.
    """
    counts = asked(dispatcher, "num_global_tokens_per_local_expert")
    if not isinstance(counts, torch.Tensor) or counts.ndim != 2:
        return None
    return counts.sum(1)
