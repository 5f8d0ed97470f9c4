"""*Distinct argument*: the arguments of a model do not repeat soon (TrainCheck's source,
DistinctArgument).
"""

from __future__ import annotations

from tspec.infer.heads import Claim, RuleHead
from tspec.infer.relations.argument import call_conditions
from tspec.infer.survey import Survey

EPOCH = "1 epoch"
SOON = "20 steps"
"""The range if no loader shows when the data begin again. It is long enough to detect a repeated
batch.
"""


COMPARED = ("cross_entropy", "likelihood", "logistic_loss", "pointwise_loss")
"""Losses that are given targets."""

HELD_OUT = "evaluations_hold_out_their_samples"


def propose(survey: Survey) -> tuple[Claim, ...]:
    """Batches of a loader are distinct in an epoch, the first inputs of the outermost modules for some steps.

    Inputs after the first may be a state that changes also where the data are stuck.
    """
    claims = []
    if survey.kind("batch") is not None:
        head = RuleHead(("b in batches",), None, "each step", ())
        again = "A batch that comes again within an epoch is learned twice in it."
        expect = _are_distinct("b.tensors", EPOCH)
        claims.append(Claim("distinct", head, expect, again, surprise=3))
    forward = survey.event("forward")
    if forward is not None and "inputs" in forward.fields:
        head = RuleHead(("c in calls(forward)",), None, None, call_conditions(survey, forward))
        stuck = "A model that is given the same input again soon trains on data that are stuck."
        claims.append(
            Claim(
                "distinct",
                head,
                _are_distinct("c.inputs[0]", SOON),
                stuck,
                "phase == train",
                surprise=3,
            )
        )
        if "known" in forward.fields:
            claims.append(_held_out())
    claims += [
        _targets(event.name)
        for event in survey.events
        if event.name in COMPARED and "target" in event.fields
    ]
    return tuple(claims)


def _targets(event: str) -> Claim:
    """The claim that targets are not stuck."""
    head = RuleHead((f"c in calls({event})",), None, None, ())
    stuck = "A target that comes again soon is stuck, and belongs to other inputs."
    name = f"targets_of_{event}_do_not_come_again_soon"
    expect, guard = _are_distinct("c.target", SOON), "phase == train and numel(c.target) >= 16"
    return Claim("distinct", head, expect, stuck, guard, surprise=3, name=name)


def _held_out() -> Claim:
    """Evaluations of all runs were made on samples that the model was not trained on."""
    head = RuleHead(("c in calls(forward)",), None, None, ())
    seen = "A score on samples that the model was trained on says nothing of others: held-out data are in the training set."
    return Claim(
        "distinct", head, "c.known <= 10%", seen, "present(c.known)", surprise=3, name=HELD_OUT
    )


def _are_distinct(tensors: str, span: str) -> str:
    return f"distinct(digest({tensors}), over: {span})"
