"""*Output*: what calls of an event always give (TrainCheck, section 3.3, APIOutput)."""

from __future__ import annotations

from tspec.infer.frames import Claim, Frame
from tspec.infer.relations.argument import call_conditions
from tspec.infer.survey import Survey, fields_of


def propose(survey: Survey) -> tuple[Claim, ...]:
    """Outputs that are finite, of autocast's dtype, or of their inputs' dtype and device."""
    claims: list[Claim] = []
    for event in survey.events:
        frame = Frame((f"c in calls({event.name})",), None, None, call_conditions(survey, event))
        tensors = fields_of(event, "tensor")
        for field, optional in tensors:
            x = f"c.{field}"
            guard = f"present({x})" if optional else None
            if event.landmark:  # numbers of every product of a step cost more than they tell
                claims.append(Claim("output", frame, f"finite({x})", guard, surprise=1))
            if "autocast.dtype" in survey.ambient:
                same = f"{x}.dtype == autocast.dtype"
                claims.append(Claim("output", frame, same, guard, surprise=3))
        for index, (first, one) in enumerate(tensors):
            for second, other in tensors[index + 1 :]:
                guards = [f"present(c.{f})" for f, o in ((first, one), (second, other)) if o]
                for feature in ("dtype", "device"):
                    equal = f"c.{first}.{feature} == c.{second}.{feature}"
                    claims.append(Claim("output", frame, equal, " and ".join(guards) or None))
    return tuple(claims)
