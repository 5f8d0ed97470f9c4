"""*Argument*: arguments that all calls of an event share (TrainCheck, section 3.3, APIArg).

Only arguments with a meaning beyond the recording are proposed: a flag, the presence of an
argument, a zero that depends on the place of the call, the mode of the called module. Sizes and
rates of one run are coincidences, and an argument that was left out in some runs may be given in
others.
"""

from __future__ import annotations

from tspec.infer.heads import SAMPLED, Claim, RuleHead, both
from tspec.infer.survey import SeenEvent, Survey, fields_of
from tspec.resolve.program.types import Optional

MODES = (("train", "{x}"), ("eval", "not {x}"))
"""The expected mode in each phase. Runs without evaluation prove nothing about it."""

MIXED_UP = {
    "train": "Training in evaluation mode drops out nothing and leaves running statistics as they are.",
    "eval": "Evaluation in training mode measures a model with dropout and changes running statistics.",
}

FLAGS = {
    "is_causal": "Without it a position sees those after it: the model learns to copy what it is to predict.",
}


def propose(survey: Survey) -> tuple[Claim, ...]:
    """Flags, arguments that are given, zeros and modes, under the conditions of a call."""
    claims: list[Claim] = []
    for event in survey.events:
        head = RuleHead((f"c in calls({event.name})",), None, None, call_conditions(survey, event))
        arguments = [field for field in event.declaration.fields if not field.reads_result]
        for field, optional in fields_of(event, "bool"):
            if field in {each.name for each in arguments}:
                claims += _flag(event, head, field, optional)
        for field, optional in fields_of(event, "float"):
            guard = f"present(c.{field})" if optional else None
            other = (
                f"`{field}` of `{event.name}` is zero where it should be in force, or the reverse."
            )
            claims.append(
                Claim("argument", head, f"c.{field} == 0", other, guard, 2, distinguishes=True)
            )
        for declared in arguments:
            is_argument = declared.source is None or declared.source[0] == "name"
            if (
                is_argument
                and isinstance(declared.type, Optional)
                and declared.name in event.fields
            ):
                given = f"`{event.name}` is called without the `{declared.name}` that sound runs give it."
                expect = f"present(c.{declared.name})"
                claims.append(Claim("argument", head, expect, given, surprise=2))
        for field, optional in fields_of(event, "module"):
            if not optional:
                claims += _modes(event, head, f"c.{field}.training", surprise=3)
    return tuple(claims)


def _flag(event: SeenEvent, head: RuleHead, field: str, optional: bool) -> list[Claim]:
    """A flag that is always given, or never."""
    if field == "training":
        return _modes(event, head, f"c.{field}", surprise=2)
    guard = both(f"present(c.{field})" if optional else None, sampling(event))
    other = FLAGS.get(field, f"`{field}` of `{event.name}` is not what it is in sound runs.")
    return [
        Claim("argument", head, f"c.{field}", other, guard, surprise=3),
        Claim("argument", head, f"not c.{field}", other, guard, surprise=2, distinguishes=True),
    ]


def _modes(event: SeenEvent, head: RuleHead, x: str, surprise: int) -> list[Claim]:
    """Claims on the mode of a called module in each phase. In training, frequent calls are sampled.
    An evaluation may lie in any step.
    """
    return [
        Claim(
            "argument",
            head,
            claim.format(x=x),
            MIXED_UP[phase],
            both(f"phase == {phase}", sampling(event) if phase == "train" else None),
            surprise,
        )
        for phase, claim in MODES
    ]


def sampling(event: SeenEvent) -> str | None:
    """The condition under which calls of an event are checked; None for all of them."""
    return None if event.landmark else SAMPLED


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
