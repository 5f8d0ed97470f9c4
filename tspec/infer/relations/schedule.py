"""*Schedule*: the learning rate changes, so the schedule's value reaches the optimizer, and it is lower at the end."""

from __future__ import annotations

from tspec.infer.heads import Claim, RuleHead
from tspec.infer.survey import Survey

SOON = "20 steps"
"""A schedule that waits longer, as one that is stepped once an epoch, gives no draft."""

HIGH = (
    "A learning rate that is as high at the end as it ever was: the schedule was built for many more steps than are made,"
    " or its warm-up is."
)

IDLE = "A group of parameters whose learning rate is zero is not trained."


def propose(survey: Survey) -> tuple[Claim, ...]:
    """Updates of some steps by one optimizer are not all made with one learning rate, and it ends at half its highest or less."""
    update = survey.event("optimizer.step")
    if update is None or "lr" not in update.fields or survey.kind("optimizer") is None:
        return ()
    head = RuleHead(("o in optimizers",), None, "after optimizer.step(optimizer: o)", ())
    moves = f"spread(optimizer.step.lr, over: {SOON}) > 0"
    stays = "A learning rate that stays where it is was computed and never given to the optimizer."
    trains = f"any(min(o.param_groups.lr) > 0, over: {SOON})"
    # If the loop is a function, no optimizer is left at the end of the run.
    run = RuleHead((), None, "each run", ())
    ends_low = "calls(optimizer.step)[-1].lr <= 50% * max(calls(optimizer.step).lr)"
    moved = "spread(calls(optimizer.step).lr) > 0"
    return (
        Claim("schedule", head, moves, stays, surprise=3),
        Claim("schedule", head, trains, IDLE, name="all_groups_have_a_learning_rate"),
        Claim("schedule", run, ends_low, HIGH, moved, surprise=3, name="learning_rates_come_down"),
    )
