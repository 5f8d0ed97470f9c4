"""What ends a job by an action of a rule."""

from __future__ import annotations


class JobStopped(SystemExit):
    """A rule's `stop`: the process ends with status 1. The rule's finding was printed before."""

    def __init__(self) -> None:
        super().__init__(1)


class RuleViolated(RuntimeError):
    """A rule's `raise`."""
