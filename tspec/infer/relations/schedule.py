"""*Schedule*: the learning rate moves, so whoever computes it hands it to the optimizer."""

from __future__ import annotations

from tspec.infer.frames import Claim, Frame
from tspec.infer.survey import Survey

SOON = "20 steps"
"""A schedule that waits longer, as one that is stepped once an epoch, gives no draft."""


def propose(survey: Survey) -> tuple[Claim, ...]:
    """Updates of some steps are not all made with one learning rate."""
    update = survey.event("optimizer.step")
    if update is None or "lr" not in update.fields:
        return ()
    frame = Frame((), None, "after optimizer.step", ())
    moves = f"spread(optimizer.step.lr, over: {SOON}) > 0"
    return (Claim("schedule", frame, moves, surprise=3),)
