"""The live source: instruments torch in a running job, follows it, and tells sinks of every edge."""

from tspec.runtime.live.job import Job
from tspec.runtime.live.watch import EntitySpec, EventSpec, FieldSpec, GroupSpec, WatchSpec

__all__ = ["EntitySpec", "EventSpec", "FieldSpec", "GroupSpec", "Job", "WatchSpec"]
