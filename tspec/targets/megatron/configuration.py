"""What a Megatron job says of itself that rules read as context."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tspec.targets.megatron.pieces import STATE

if TYPE_CHECKING:
    from tspec.runtime.live.followed import FollowedJob


def know(job: FollowedJob, config: Any) -> None:
    """Take `num_layers` from a `TransformerConfig`, unless the script has annotated it."""
    layers = getattr(config, "num_layers", None)
    if isinstance(layers, int):
        job.known.annotated.setdefault("num_layers", layers)


def know_batch(job: FollowedJob, schedule: Mapping[str, Any]) -> None:
    """Take `global_batch_size` from the arguments of a schedule: what all ranks train on in a step."""
    state: Any = sys.modules.get(STATE)
    count, size = schedule.get("num_microbatches"), schedule.get("micro_batch_size")
    if state is not None and isinstance(count, int) and isinstance(size, int):
        ranks = state.get_data_parallel_world_size()
        job.known.annotated["global_batch_size"] = count * size * ranks
