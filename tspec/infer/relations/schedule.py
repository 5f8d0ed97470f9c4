"""*Schedule*: the learning rate moves, so whoever computes it hands it to the optimizer."""

from __future__ import annotations

from tspec.infer.heads import Claim, RuleHead
from tspec.infer.survey import Survey

SOON = "20 steps"
"""A schedule that waits longer, as one that is stepped once an epoch, gives no draft."""


def propose(survey: Survey) -> tuple[Claim, ...]:
    """Updates of some steps by one optimizer are not all made with one learning rate."""
    update = survey.event("optimizer.step")
    if update is None or "lr" not in update.fields or survey.kind("optimizer") is None:
        return ()
    head = RuleHead(("o in optimizers",), None, "after optimizer.step(optimizer: o)", ())
    moves = f"spread(optimizer.step.lr, over: {SOON}) > 0"
    stays = "A learning rate that stays where it is was computed and never given to the optimizer."
    return (Claim("schedule", head, moves, stays, surprise=3),)
