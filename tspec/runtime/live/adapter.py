"""What a target knows of its own framework in a running job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from tspec.runtime.live.job import Job


class Adapter(Protocol):
    """One framework. `install` is called once for each job, and keeps nothing between jobs."""

    def install(self, job: Job) -> None:
        """Follow the framework's calls; those of modules that are not loaded are found once they are."""
