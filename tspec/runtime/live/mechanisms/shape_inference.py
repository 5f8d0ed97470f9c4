"""Shape inference of torch's pipeline schedules: its passes are no training, and are not seen.

Before its first step a schedule runs stages and loss once on uninitialised memory, to learn the shapes
of what stages send to each other (`torch.distributed.pipelining`, `_PipelineSchedule._initialize_pp_stages`).
"""

from __future__ import annotations

import sys

from tspec.runtime.live.followed import FollowedJob
from tspec.runtime.live.watched import Role

MODULE = "torch.distributed.pipelining.schedules"
"""It takes long to import: it is looked at when the script loads it."""
SCHEDULE = "_PipelineSchedule"
INFERENCE = "_initialize_pp_stages"


def install(job: FollowedJob) -> None:
    """See nothing of what a schedule runs to infer shapes."""
    role = Role("shape inference", path=f"{MODULE}.{SCHEDULE}.{INFERENCE}", hides=True)

    def look_at(cls: type) -> None:
        if cls.__module__ == MODULE and cls.__name__ == SCHEDULE:
            job.functions.watch_method(cls, INFERENCE, role)

    job.functions.watch_classes(look_at)
    schedule = getattr(sys.modules.get(MODULE), SCHEDULE, None)
    if schedule is not None:
        look_at(schedule)
