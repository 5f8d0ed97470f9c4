"""*Accumulation*: the micro-batches and passes of a step are different data, and losses are averaged."""

from __future__ import annotations

from tspec.infer.heads import Claim, RuleHead
from tspec.infer.survey import Survey

SEVERAL = "count(calls(backward)) > 1"


def propose(survey: Survey) -> tuple[Claim, ...]:
    """Claims about the steps that make several backward passes."""
    if survey.event("backward") is None:
        return ()
    return (*_distinct(survey), *_averaged(survey))


def _distinct(survey: Survey) -> tuple[Claim, ...]:
    """Claims about a model's inputs within one step."""
    forward = survey.event("forward")
    if forward is None or "inputs" not in forward.fields:
        return ()
    head = RuleHead((), None, "before optimizer.step", ())
    expect = "distinct(calls(forward).inputs)"
    again = "Two micro-batches of one step are the same data, which is learned twice."
    passes = "count(calls(forward)) > 1 and count(calls(backward)) <= 1"
    same = "Two passes of one step are given the same data: a sample is compared with itself."
    return (
        Claim("accumulation", head, expect, again, SEVERAL, surprise=3),
        Claim(
            "accumulation", head, expect, same, passes, surprise=3, name="passes_of_a_step_differ"
        ),
    )


def _averaged(survey: Survey) -> tuple[Claim, ...]:
    """A claim that the loss given to `backward`, times the number of passes, is the first loss that
    the criterion computed in the step.
    """
    loss = survey.event("cross_entropy")
    if loss is None or "loss" not in loss.fields or survey.event("optimizer.step") is None:
        return ()
    head = RuleHead((), None, "before optimizer.step", ())
    given = "mean(calls(backward)[0].loss) * count(calls(backward))"
    computed = "calls(cross_entropy)[0].loss"
    expect = f"abs({given} - {computed}) <= 4 * ulp(float32) * abs({computed})"
    added = "The losses of micro-batches are not divided by the number of passes, so the update is larger or smaller than that of their average."
    guard = f"{SEVERAL} and count(calls(cross_entropy)) > 0"
    return (Claim("accumulation", head, expect, added, guard, surprise=3),)
