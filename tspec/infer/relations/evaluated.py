"""*Evaluated*: evaluations run the model that is trained, or one that follows it, such as an average of its weights."""

from __future__ import annotations

from tspec.infer.heads import Claim, RuleHead
from tspec.infer.survey import Survey

ASKED = (
    "phase == eval and c.module.root and not c.module.training and count(c.module.parameters) > 0"
)
GROUPS = "count(c.module.parameters.group)"

OTHER = "Evaluations ask a model that is not trained, as a copy that is left as it was."
ITSELF = "Evaluations ask the trained model itself, and not the average of its weights that they are to measure."


def propose(survey: Survey) -> tuple[Claim, ...]:
    """Claims that all evaluated models are held by an optimizer, or that none is."""
    forward, parameter = survey.event("forward"), survey.kind("parameter")
    if forward is None or "module" not in forward.fields or parameter is None:
        return ()
    if "group" not in parameter.fields:
        return ()
    head = RuleHead(("c in calls(forward)",), None, None, ())
    trained = Claim(
        "evaluated", head, f"{GROUPS} > 0", OTHER, ASKED, surprise=2,
        name="evaluations_ask_what_is_trained",
    )  # fmt: skip
    averaged = Claim(
        "evaluated", head, f"{GROUPS} == 0", ITSELF, ASKED, surprise=3,
        name="evaluations_ask_a_model_that_follows",
    )  # fmt: skip
    return trained, averaged
