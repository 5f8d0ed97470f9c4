"""*Event contains*: every step (or epoch) holds a call of an event, or just one.

TrainCheck's EventContain over spans (section 3.3); the changes that a call brings about are in `change`.
"""

from __future__ import annotations

from tspec.builtin.events import roles_of
from tspec.infer.heads import Claim, RuleHead
from tspec.infer.loop import calls_of_the_loop, is_once_a_step
from tspec.infer.survey import SeenEvent, Survey

APART = 10
"""The least number of steps between calls of an event that is not expected in every step: it comes
once an epoch, or once in a while.
"""

MISSING = {
    "optimizer.zero_grad": "A step without it adds its gradients to those of the step before.",
    "clip": "A step without it updates with gradients of any size.",
    "optimizer.step": "A step without it computes gradients and learns nothing from them.",
    "scheduler.step": "A step without it keeps its learning rate: the schedule ends later than planned.",
    "fetch": "A step without it trains on the batch of the step before.",
    "backward": "A step without it updates with old gradients, or with none.",
    "wrapper.forward": "A step without it goes around the wrapper: gradients are not synchronised.",
    "collective": "A step without it exchanges nothing between ranks.",
}
"""The consequence of a missing call."""

TWICE = {
    "optimizer.zero_grad": "Cleared a second time, the gradients of some micro-batches are lost; not cleared, those of the step before are added.",
    "clip": "Clipped twice in a step, gradients end at another norm; without a call they keep any norm, unless the script scales them itself.",
    "optimizer.step": "A second update in a step uses the same gradients again; without one, they are lost.",
    "scheduler.step": "Stepped twice, the learning rate falls twice as fast as planned; not stepped, it stays.",
}
"""The consequence of a repeated or missing call."""


def propose(survey: Survey) -> tuple[Claim, ...]:
    """For each call of the loop: some or exactly one in every step.

    For rare calls: one an epoch.
    """
    claims: list[Claim] = []
    for event in calls_of_the_loop(survey):
        conditions = span_conditions(survey)
        step = RuleHead((), None, "each step", conditions)
        if event.landmark:
            claims += _in_each(event, step)
        if roles_of(event.name).is_seldom and event.per_step < 1:
            claims += _seldom(event, step, RuleHead((), None, "each epoch", conditions))
    return tuple(claims)


def _in_each(event: SeenEvent, step: RuleHead) -> list[Claim]:
    name = event.name
    missing = MISSING.get(name, f"A step without it leaves out `{name}`.")
    claims = [Claim("contains", step, f"contains {name}", missing, surprise=2)]
    if is_once_a_step(event):
        once = f"count(calls({name})) == 1"
        claims.append(Claim("contains", step, once, _twice(name), surprise=3))
    return claims


def _seldom(event: SeenEvent, step: RuleHead, epoch: RuleHead) -> list[Claim]:
    """A schedule that is stepped once an epoch, or once in a while."""
    name = event.name
    once = f"count(calls({name})) == 1"
    claims = [Claim("contains", epoch, once, _twice(name), surprise=3)]
    if event.per_step <= 1 / APART:
        few = f"sum(count(calls({name})), over: {APART} steps) <= 1"
        fast = "Stepped with every batch, a schedule that counts epochs ends long before the run."
        claims.append(Claim("contains", step, few, fast, surprise=3))
    return claims


def _twice(name: str) -> str:
    return TWICE.get(name, f"`{name}` is called twice, or not at all.")


def span_conditions(survey: Survey) -> tuple[str, ...]:
    """Conditions on a span are the landmarks in it, never its number."""
    return tuple(
        f"count(calls({name})) > 0"
        for name in ("optimizer.step", "backward")
        if survey.event(name) is not None
    )
