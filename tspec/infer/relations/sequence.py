"""*Sequence*: in every step one event comes before another (TrainCheck, section 3.3, APISequence)."""

from __future__ import annotations

from tspec.infer.frames import Claim, Frame
from tspec.infer.survey import Survey


def propose(survey: Survey) -> tuple[Claim, ...]:
    """For each ordered pair of landmarks that a step usually holds: every B has an A before it."""
    frame = Frame((), None, "each step", ())
    names = [e.name for e in survey.events if e.landmark and e.per_step >= 0.5]
    return tuple(
        Claim("sequence", frame, f"{first} before {second}", surprise=2)
        for first in names
        for second in names
        if first != second
    )
