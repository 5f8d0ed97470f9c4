"""Stages of torch's pipelines: which modules on a rank are parts of a pipeline, and which ranks
hold the other parts.
"""

from __future__ import annotations

from typing import Any

from torch import nn

from tspec.runtime.live.entities.kind import asked
from tspec.runtime.live.models import ModelRegistry
from tspec.runtime.live.module_tree import walk
from tspec.runtime.live.numbered import NumberedObjects
from tspec.runtime.live.ranks import RankTopology

STAGE = "torch.distributed.pipelining.stage._PipelineStageBase"


class PipelineStages:
    """The stages that this rank holds. Things are `torch.distributed.pipelining.PipelineStage`."""

    def __init__(self, models: ModelRegistry, ranks: RankTopology) -> None:
        self._models = models
        self._ranks = ranks
        self.numbered = NumberedObjects("stage")
        self._read: tuple[int, int] | None = None
        self._alone: frozenset[int] = frozenset()

    def holder(self, module: str | None) -> tuple[int, ...] | None:
        """This rank alone, for a model with a stage of a pipeline over all ranks of the job: each
        rank trains its own stage.

        A model that was cut on the rank also holds modules outside the stage; no replica trains
        those either. None for a pipeline over some of the ranks: other ranks may hold copies of its
        stages.
        """
        if not self.numbered.count or module is None:
            return None
        read = self._models.version, self.numbered.count
        if self._read != read:
            self._read = read
            self._alone = self._around_stages()
        held = self._models.module_of(module)
        return (self._ranks.rank,) if id(held) in self._alone else None

    def _around_stages(self) -> frozenset[int]:
        """Ids of all modules of the models that hold a stage of a pipeline over all ranks."""
        stages = {
            id(held)
            for stage in self.numbered.alive().values()
            if self._spans_all(asked(stage, "group"))
            for held in _modules(asked(stage, "submod"))
        }
        models = ({id(held) for held in _modules(root.module())} for root in self._models.roots)
        return frozenset().union(*(held for held in models if held & stages))

    def _spans_all(self, group: Any) -> bool:
        ranks = self._ranks.of_group(group)
        return ranks is not None and len(ranks) == self._ranks.world


def _modules(module: Any) -> list[nn.Module]:
    return [held for _, held in walk(module)] if isinstance(module, nn.Module) else []
