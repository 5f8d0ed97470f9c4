"""*Output*: the results that calls of an event always have (TrainCheck, section 3.3, APIOutput)."""

from __future__ import annotations

from tspec.infer.heads import Claim, RuleHead, both
from tspec.infer.loop import is_of_the_loop
from tspec.infer.relations.argument import call_conditions, sampling
from tspec.infer.survey import Survey, fields_of

NOT_FINITE = (
    "A NaN or infinity in it spreads to what is computed from it, and by an update to parameters."
)
OTHER_DTYPE = "The operator runs around autocast: in another precision, and slower or less exact."


def propose(survey: Survey) -> tuple[Claim, ...]:
    """Tensors of floats that are finite in the loop's own calls, and of autocast's dtype."""
    claims: list[Claim] = []
    for event in survey.events:
        head = RuleHead((f"c in calls({event.name})",), None, None, call_conditions(survey, event))
        for field, optional in fields_of(event, "tensor"):
            x = f"c.{field}"
            guard = f"present({x})" if optional else None
            if is_of_the_loop(event) and event.landmark and field in event.floating:
                claims.append(Claim("output", head, f"finite({x})", NOT_FINITE, guard))
            if "autocast.dtype" in survey.ambient:
                same = f"{x}.dtype == autocast.dtype"
                when = both(guard, sampling(event))
                claims.append(Claim("output", head, same, OTHER_DTYPE, when, surprise=3))
    return tuple(claims)
