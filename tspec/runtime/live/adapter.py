"""The knowledge of a framework that its target uses in a running job."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import nn

    from tspec.runtime.live.followed import FollowedJob
    from tspec.runtime.live.name_tables import Naming


class Adapter(Protocol):
    """One framework. `install` is called once for each job, and keeps nothing between jobs."""

    def install(self, job: FollowedJob) -> None:
        """Follow the framework's calls. Functions of modules that are not loaded yet are found
        after the import.
        """

    def naming(self, module: nn.Module, say: Callable[[str], None]) -> Naming | None:
        """The naming from paths in an outermost module to paths in the one-device model; None for
        other frameworks' modules.

        `say` shows a message about a mismatch to the person at the terminal.
        """
