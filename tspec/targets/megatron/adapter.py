"""Megatron in a running job: what its schedules, optimizers and models tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tspec.targets.megatron import steps

if TYPE_CHECKING:
    from tspec.runtime.live.job import Job


class Megatron:
    """The adapter of megatron-core."""

    def install(self, job: Job) -> None:
        """Follow schedules, micro-batches and optimizers."""
        steps.install(job)
