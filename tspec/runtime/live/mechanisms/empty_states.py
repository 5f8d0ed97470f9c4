"""States that `torch.distributed.checkpoint` makes of optimizers that have none: its update is no training, and is not seen.

Before it loads into an optimizer, or asks for its state, it makes one update with gradients and a learning rate of zero
(`torch.distributed.checkpoint.state_dict._init_optim_state`).
"""

from __future__ import annotations

from tspec.runtime.live.followed import FollowedJob
from tspec.runtime.live.watched import Role

INITIALISING = "torch.distributed.checkpoint.state_dict._init_optim_state"


def install(job: FollowedJob) -> None:
    """See nothing of the update that makes an optimizer's state."""
    job.functions.watch_path(Role("state initialisation", path=INITIALISING, hides=True))
