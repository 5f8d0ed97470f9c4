"""Follows Megatron's schedules, optimizers and models in a running job."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tspec.targets.megatron import inputs, names, steps
from tspec.targets.megatron.shards import GROUPS, ShardedFields
from tspec.targets.megatron.streams import streams

if TYPE_CHECKING:
    from torch import nn

    from tspec.runtime.live.followed import FollowedJob
    from tspec.runtime.live.name_tables import Naming


class Megatron:
    """The adapter of megatron-core."""

    def install(self, job: FollowedJob) -> None:
        """Follow schedules, micro-batches and optimizers."""
        job.ranks_known.add_groups(GROUPS)
        pieces = ShardedFields()
        job.state.more_columns.append(pieces.column)
        job.state.generators.more.append(streams)
        steps.install(job, pieces)
        inputs.install(job)

    def naming(self, module: nn.Module, say: Callable[[str], None]) -> Naming | None:
        """The names of a model chunk, by its place in the pipeline."""
        if not names.is_chunk(module):
            return None
        place = names.place_of(module)
        for wrong in names.misnumbered(module, place):
            say(wrong)
        return place.name
