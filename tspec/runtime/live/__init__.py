"""The live source: instruments torch in a running job, follows it, and tells sinks of every edge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tspec.runtime.live.watch import EntitySpec, EventSpec, FieldSpec, GroupSpec, WatchSpec

if TYPE_CHECKING:
    from tspec.runtime.live.job import LiveJob

__all__ = ["EntitySpec", "EventSpec", "FieldSpec", "GroupSpec", "LiveJob", "WatchSpec"]


def __getattr__(name: str) -> Any:
    """Import `LiveJob` late: it needs torch, which takes seconds to import.

    Watch specs need no torch.
    """
    if name == "LiveJob":
        from tspec.runtime.live.job import LiveJob

        return LiveJob
    raise AttributeError(name)
