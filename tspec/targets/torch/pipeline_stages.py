"""The stages of `torch.distributed.pipelining` that this process holds, and the names of their modules.

Under interleaved schedules a rank has several stages: each is a model of its own, and a part of one.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

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
        stages = {unwrapped(each.submod): each for each in stages_of_process()}
        stage = stages.get(module)
        if len(stages) < 2 or stage is None:
            return None
        title = type(module).__name__
        if not stage.is_last:
            title = f"{title}.stages.{stage.stage_index}"
        return lambda path: path or title


def stages_of_process() -> tuple[Any, ...]:
    """The stages of this process, in the order in which data pass them."""
    loaded = sys.modules.get(_MODULE)
    if loaded is None:
        return ()
    # `isinstance` would ask a weak proxy for the class of its object, which may be gone.
    kind = loaded._PipelineStageBase
    found = [each for each in gc.get_objects() if issubclass(type(each), kind)]
    return tuple(sorted(found, key=lambda each: int(each.stage_index)))
