"""Averages of a model that torch keeps: models of their own from their first update on, also before they are called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tspec.runtime.live.followed import FollowedJob
from tspec.runtime.live.watched import Listener, Role

UPDATE = "torch.optim.swa_utils.AveragedModel.update_parameters"


class AverageListener(Listener):
    """Follows updates of averages."""

    def __init__(self, job: FollowedJob) -> None:
        self._job = job

    def before(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        """An average is about to take in the weights."""
        self._job.state.models.handed_over(args[0])


def install(job: FollowedJob) -> None:
    """Follow updates of averages."""
    job.functions.watch_path(Role("average", AverageListener(job), path=UPDATE))
