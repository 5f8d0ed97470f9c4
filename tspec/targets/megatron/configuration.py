"""The settings of a Megatron job that rules read as context."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from tspec.runtime.live.cuda.transfer import in_transfer
from tspec.runtime.live.watched import Listener
from tspec.targets.megatron.shards import STATE

if TYPE_CHECKING:
    from tspec.runtime.live.followed import FollowedJob


def know(job: FollowedJob, config: Any) -> None:
    """Take `num_layers` from a `TransformerConfig`, unless the script has annotated it."""
    layers = getattr(config, "num_layers", None)
    if isinstance(layers, int):
        job.known.annotated.setdefault("num_layers", layers)


def know_batch(job: FollowedJob, schedule: Mapping[str, Any]) -> None:
    """Set `global_batch_size`, the number of samples of all ranks in a step, from the arguments of
    a schedule.
    """
    state: Any = sys.modules.get(STATE)
    count, size = schedule.get("num_microbatches"), schedule.get("micro_batch_size")
    if state is not None and isinstance(count, int) and isinstance(size, int):
        ranks = state.get_data_parallel_world_size()
        job.known.annotated["global_batch_size"] = count * size * ranks


OVERFLOWED = "overflowed"
LOSS_SCALE = "loss_scale"
"""The context names that `Overflow` sets."""


class Overflow(Listener):
    """Sets `overflowed` and `loss_scale` during an update: whether gradients of a scaled loss have overflowed on
    this rank, and the scale.

    Without a loss scale no update is skipped. The scale is taken before the update, which may change it. No number is
    waited for: a rule reads it where it asks for it.
    """

    def __init__(self, job: FollowedJob) -> None:
        self._job = job
        self._is_updating = False

    def before(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
        """An update of Megatron's optimizer begins. True if no update that holds this one was under way."""
        if self._is_updating:
            return False
        scales = _scales(args[0])
        annotated = self._job.known.annotated
        annotated[LOSS_SCALE] = in_transfer(args[0].get_loss_scale(), float) if scales else 1.0
        annotated[OVERFLOWED] = scales and self._has_overflowed()
        self._is_updating = True  # last, as `ended` is not called if a line above raises
        return True

    def ended(self, token: bool) -> None:
        """The update has ended."""
        if token:
            self._is_updating = False
            self._job.known.annotated[OVERFLOWED] = False

    def _has_overflowed(self) -> Any:
        parameters = self._job.state.models.parameters().values()
        gradients = [getattr(each.tensor, "main_grad", None) for each in parameters]
        there = [each for each in gradients if each is not None]
        if not there:
            return False
        norms = torch.stack(torch._foreach_norm(there, dtype=torch.float32))
        return in_transfer(norms.isfinite().all().logical_not(), bool)


def _scales(optimizer: Any) -> bool:
    """An optimizer, or one that it holds, has gradients of a loss that was scaled."""
    held = getattr(optimizer, "chained_optimizers", [optimizer])
    return any(getattr(each, "grad_scaler", None) is not None for each in held)
