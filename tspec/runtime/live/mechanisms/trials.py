"""Passes that are none of the training: torch's pipeline schedules try stages and loss on uninitialised memory.

A schedule does so once before its first step, to learn the shapes of what stages send to each other
(`torch.distributed.pipelining`, `_PipelineSchedule._initialize_pp_stages`).
"""

from __future__ import annotations

import sys

from tspec.runtime.live.followed import FollowedJob
from tspec.runtime.live.watched import Role

MODULE = "torch.distributed.pipelining.schedules"
"""It takes long to import: it is looked at when the script loads it."""
SCHEDULE = "_PipelineSchedule"
TRIAL = "_initialize_pp_stages"


def install(job: FollowedJob) -> None:
    """See nothing of what a schedule tries."""
    role = Role("trial", path=f"{MODULE}.{SCHEDULE}.{TRIAL}", hides=True)

    def look_at(cls: type) -> None:
        if cls.__module__ == MODULE and cls.__name__ == SCHEDULE:
            job.functions.watch_method(cls, TRIAL, role)

    job.functions.watch_classes(look_at)
    schedule = getattr(sys.modules.get(MODULE), SCHEDULE, None)
    if schedule is not None:
        look_at(schedule)
