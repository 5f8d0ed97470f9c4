"""*Argument*: what calls of an event are always given (TrainCheck, section 3.3, APIArg).

Only what has a meaning beyond the recording is proposed: a flag, an absent argument, zero, a mode of
the module that is called. Sizes and rates of one run are coincidences.
"""

from __future__ import annotations

from tspec.infer.frames import Claim, Frame
from tspec.infer.survey import SeenEvent, Survey, fields_of
from tspec.resolve.program.types import Optional


def propose(survey: Survey) -> tuple[Claim, ...]:
    """Flags, absent arguments, zeros and modes, under the conditions of a call."""
    claims: list[Claim] = []
    for event in survey.events:
        frame = Frame((f"c in calls({event.name})",), None, None, call_conditions(survey, event))
        for field, optional in fields_of(event, "bool"):
            guard = f"present(c.{field})" if optional else None
            claims.append(Claim("argument", frame, f"c.{field}", guard, surprise=2))
            claims.append(Claim("argument", frame, f"not c.{field}", guard, surprise=2))
        for field, optional in fields_of(event, "float"):
            guard = f"present(c.{field})" if optional else None
            claims.append(Claim("argument", frame, f"c.{field} == 0", guard))
        for declared in event.declaration.fields:
            if isinstance(declared.type, Optional) and declared.name in event.fields:
                claims.append(Claim("argument", frame, f"not present(c.{declared.name})"))
        for field, optional in fields_of(event, "module"):
            if not optional:
                claims.append(Claim("argument", frame, f"c.{field}.training", surprise=3))
                claims.append(Claim("argument", frame, f"not c.{field}.training", surprise=3))
    return tuple(claims)


def call_conditions(survey: Survey, event: SeenEvent) -> tuple[str, ...]:
    """Conditions on one call, most general first."""
    conditions = ["phase == train", "phase == eval"]
    if "autocast.enabled" in survey.ambient:
        conditions += ["autocast.enabled", "not autocast.enabled"]
    for field, optional in fields_of(event, "bool"):
        if not optional:
            conditions += [f"c.{field}", f"not c.{field}"]
    for field, optional in fields_of(event, "module"):
        if not optional:
            conditions += [f"c.{field}.root", f"c.{field}.training", f"not c.{field}.training"]
            conditions += [f"isinstance(c.{field}, {name})" for name in survey.classes]
    return tuple(conditions)
