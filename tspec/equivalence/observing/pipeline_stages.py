"""The names of a rank's stages under torch's interleaved schedules: each is a model of its own, and a part of one."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator

from torch import nn

from tspec.runtime.live.followed import FollowedJob
from tspec.runtime.live.module_tree import unwrapped
from tspec.runtime.live.name_tables import Naming

_MODULE = "torch.distributed.pipelining.stage"


class PipelineStageAdapter:
    """Adapter for ranks with several stages of `torch.distributed.pipelining`.

    Modules have the names they have in their stage, as on one device. The last stage, whose output
    is the model's, has its class's name; any other one has its number too, as `Model.stages.1`.
    """

    def install(self, job: FollowedJob) -> None:
        """Nothing needs to be followed."""

    def naming(self, module: nn.Module, say: Callable[[str], None]) -> Naming | None:
        """The names within a stage, if this process has several."""
        stages = dict(_stages())
        if len(stages) < 2 or module not in stages:
            return None
        title = type(module).__name__
        if stages[module] is not None:
            title = f"{title}.stages.{stages[module]}"
        return lambda path: path or title


def _stages() -> Iterator[tuple[nn.Module, int | None]]:
    """The models of this process that are stages, each with its number, None of the last stage."""
    loaded = sys.modules.get(_MODULE)
    if loaded is None:
        return
    for each in gc.get_objects():
        if isinstance(each, loaded._PipelineStageBase):
            yield unwrapped(each.submod), None if each.is_last else each.stage_index
