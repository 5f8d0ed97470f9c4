"""Attention weights are dropped by the default random stream, which is the same on all tensor-parallel ranks.

Source: Megatron-LM issue 1256's class (dropout in the wrong random stream).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

LAYOUT = "tp=2,dropout"
FOUND = ("heads_drop_from_their_own_stream", 1, (0, 1), "model-parallel-rng")


def put_in() -> None:
    """No stream takes the default one's place."""
    from megatron.core.tensor_parallel.random import CudaRNGStatesTracker

    @contextmanager
    def fork(self: Any, name: str = "model-parallel-rng") -> Iterator[None]:
        yield

    CudaRNGStatesTracker.fork = fork
