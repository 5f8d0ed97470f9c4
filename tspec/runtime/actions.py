"""The exceptions by which a rule acts on a job."""

from __future__ import annotations

from tspec.runtime.edges import SkipCall


class JobStopped(SystemExit):
    """A rule's `stop`: the process ends with status 1. The rule's finding was printed before."""

    def __init__(self) -> None:
        super().__init__(1)


class RuleViolated(RuntimeError):
    """A rule's `raise`."""


ACTS = (SkipCall, JobStopped, RuleViolated)
"""All of them. They are no faults of tspec's."""
