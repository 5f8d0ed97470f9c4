"""The interface of a followed job to the owner of its process's patches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from tspec.runtime.live.activities import Activity
from tspec.runtime.live.ambient import AmbientValues


class PendingFunctions(Protocol):
    """Functions that are watched as soon as they exist."""

    @property
    def waiting(self) -> Sequence[str]:
        """Paths that have not been found."""

    def modules_changed(self) -> None:
        """Modules were imported: look again for functions that were not found before."""

    def created(self, cls: type) -> None:
        """A class was just made."""


class Installation(Protocol):
    """One job, from the exchange of its first function to its end."""

    @property
    def active(self) -> bool:
        """True from the job's start to its end."""

    @property
    def functions(self) -> PendingFunctions:
        """The functions that it watches."""

    @property
    def known(self) -> AmbientValues:
        """Values of no subject."""

    def quietly(self, action: Callable[[], None]) -> None:
        """Run code of tspec's own; a fault in it does not reach the job."""

    def do(self, activity: Activity) -> None:
        """The run made an activity from which steps are derived."""

    def departs(self, thing: Any) -> None:
        """An optimizer or a schedule is about to be freed."""

    def forked(self, worker: int | None) -> None:
        """This process is a fork: a job of its own, or the loader's worker of that number."""

    def say(self, message: str) -> None:
        """Tell the person at the terminal something, once."""
