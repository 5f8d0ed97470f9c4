"""The calls by which a script addresses the jobs that are followed in its process."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from tspec.runtime.live.activities import StepAnnotated
from tspec.runtime.live.process import PROCESS


def say_step(number: int | None) -> None:
    """A training step begins."""
    for job in PROCESS.jobs:
        job.quietly(partial(job.do, StepAnnotated(number)))


def say(values: Mapping[str, Any]) -> None:
    """Set context values in all jobs that are followed in this process."""
    for job in PROCESS.jobs:
        job.known.annotated.update(values)
