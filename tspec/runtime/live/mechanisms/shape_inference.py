"""Hides the shape inference of torch's pipeline schedules, whose passes are no training.

Before its first step a schedule runs stages and loss once on uninitialised memory, to learn the
shapes of the tensors that stages send each other (`torch.distributed.pipelining`,
`_PipelineSchedule._initialize_pp_stages`).
"""

from __future__ import annotations

from tspec.runtime.live.followed import FollowedJob
from tspec.runtime.live.watched import Role

INFERENCE = "torch.distributed.pipelining.schedules._PipelineSchedule._initialize_pp_stages"


def install(job: FollowedJob) -> None:
    """Hide all calls that a schedule makes to infer shapes."""
    job.functions.watch_path(Role("shape inference", path=INFERENCE, hides=True))
