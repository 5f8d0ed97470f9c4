"""The jobs that are followed in this process just now, for what a script says to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tspec.runtime.live.steps import Said

if TYPE_CHECKING:
    from tspec.runtime.live.job import Job

JOBS: list[Job] = []
"""A job adds itself when it begins and takes itself out when it ends."""


def say_step(number: int | None) -> None:
    """A training step begins."""
    for job in tuple(JOBS):
        job.quietly(lambda told=job: told.do(Said(number)))  # type: ignore[misc]


def say(values: Mapping[str, Any]) -> None:
    """Something is known from now on."""
    for job in tuple(JOBS):
        job.known.annotated.update(values)
