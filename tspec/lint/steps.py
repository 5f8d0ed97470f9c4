"""The step in conditions: whether one reads it, and which windows come in the first step."""

from __future__ import annotations

from tspec.resolve.rules import Ambient, Rule
from tspec.resolve.walk import walk

IN_EVERY_STEP = frozenset({"optimizer.step", "optimizer.zero_grad", "backward", "fetch"})
"""Events that every step of training has, the first one too."""


def read_step(rule: Rule) -> Ambient | None:
    """`step`, if `when` reads it."""
    return read(rule, "step")


def read(rule: Rule, name: str) -> Ambient | None:
    """A name of the context, if `when` reads it."""
    if rule.when is None:
        return None
    for part in walk(rule.when):
        if isinstance(part, Ambient) and part.name == name:
            return part
    return None


def begins_in_the_first_step(rule: Rule) -> bool:
    """The first window of the rule is in the first step of a job."""
    window = rule.window
    if window.kind == "each":
        return window.span in ("step", "microbatch")
    return window.event is not None and any(each in IN_EVERY_STEP for each in window.event.events)
