"""*Sequence*: in every step one event comes before another (TrainCheck, section 3.3, APISequence)."""

from __future__ import annotations

from tspec.infer.heads import Claim, RuleHead
from tspec.infer.loop import is_of_the_user
from tspec.infer.survey import SeenEvent, Survey

ORDER = {
    ("optimizer.zero_grad", "backward"): "A backward pass adds to gradients that are not cleared before it; cleared after it, its own are lost.",
    ("backward", "clip"): "The gradients that are clipped are not those of this step.",
    ("backward", "finalize_grads"): "The gradients that are reduced are not those of this step.",
    ("backward", "optimizer.step"): "The update is made without new gradients.",
    ("clip", "optimizer.step"): "The update is made with gradients that are not clipped.",
    ("collective", "optimizer.step"): "The update is made before ranks have exchanged anything.",
    ("finalize_grads", "update"): "The update is made with gradients that are not reduced.",
    ("optimizer.step", "scheduler.step"): "The schedule moves on from a learning rate that no update used.",
}  # fmt: skip
"""Pairs of calls whose order matters, and the consequence if the first does not come before the
second.

The first call then comes later, or not at all.
"""


def propose(survey: Survey) -> tuple[Claim, ...]:
    """For each ordered pair of landmarks that a step usually holds: every B has an A before it."""
    head = RuleHead((), None, "each step", ())
    usual = [event for event in survey.events if event.landmark and event.per_step >= 0.5]
    claims = []
    for first in usual:
        for second in usual:
            breaks = _breaks(first, second)
            if first != second and breaks is not None:
                expect = f"{first.name} before {second.name}"
                claims.append(Claim("sequence", head, expect, breaks, surprise=2))
    return tuple(claims)


def _breaks(first: SeenEvent, second: SeenEvent) -> str | None:
    """The consequence of the reverse order; None where the order does not matter."""
    if is_of_the_user(first) or is_of_the_user(second):
        return f"`{second.name}` comes without `{first.name}` before it."
    return ORDER.get((first.name, second.name))
