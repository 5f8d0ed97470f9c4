"""*Event contains*: every step (or epoch) holds a call of an event, or just one.

TrainCheck's EventContain over spans (section 3.3); the changes that a call brings about are in `change`.
"""

from __future__ import annotations

from tspec.builtin.events import roles_of
from tspec.infer.frames import Claim, Frame
from tspec.infer.survey import Survey

APART = 10
"""What comes once in so many steps or less comes once an epoch, or once in a while."""


def propose(survey: Survey) -> tuple[Claim, ...]:
    """For each landmark: some call or just one in every step or epoch; of those that are seldom, at most one in some steps."""
    claims = []
    for span in ("step", "epoch"):
        frame = Frame((), None, f"each {span}", span_conditions(survey))
        for event in survey.events:
            if span == "step" and not event.landmark:
                continue
            name = event.name
            if roles_of(name).is_seldom and span == "step" and event.per_step <= 1 / APART:
                seldom = f"sum(count(calls({name})), over: {APART} steps) <= 1"
                claims.append(Claim("contains", frame, seldom, surprise=3))
            once = f"count(calls({name})) == 1"
            claims.append(Claim("contains", frame, f"contains {name}", surprise=2))
            if span == "step" or event.per_step < 1:
                claims.append(Claim("contains", frame, once, surprise=3))
    return tuple(claims)


def span_conditions(survey: Survey) -> tuple[str, ...]:
    """A span is told from others by the landmarks in it; never by its number."""
    return tuple(
        f"count(calls({name})) > 0"
        for name in ("optimizer.step", "backward")
        if survey.event(name) is not None
    )
