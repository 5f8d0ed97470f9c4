"""Megatron's named random streams: `model-parallel-rng`, `expert-parallel-rng`, `data-parallel-rng`."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import torch

RANDOM = "megatron.core.tensor_parallel.random"


def streams() -> Mapping[str, torch.Tensor]:
    """The states of the streams that are set up. Reading draws nothing."""
    random = sys.modules.get(RANDOM)
    tracker = None if random is None else random._CUDA_RNG_STATE_TRACKER
    states = {} if tracker is None else tracker.get_states()
    return {name: state.cpu() for name, state in states.items() if isinstance(state, torch.Tensor)}
