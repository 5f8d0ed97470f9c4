"""*Event contains* for state: what a call changes, what nothing else does, and what stays as it is.

TrainCheck's EventContain with a variable's change inside a call (section 3.3).
"""

from __future__ import annotations

from tspec.infer.frames import Claim, Frame
from tspec.infer.survey import SeenKind, Survey
from tspec.resolve.types import BOOL, FLOAT, TENSOR

CHANGERS = (
    "optimizer.step",
    "scheduler.step",
    "backward",
    "optimizer.zero_grad",
    "load_state_dict",
)
"""Events that exist to change state; an effect of another (a dropout's on a weight) would be a coincidence."""


def propose(survey: Survey) -> tuple[Claim, ...]:
    """Claims about every tensor and number of every kind, in the windows of the events that change state."""
    claims: list[Claim] = []
    for kind in survey.kinds:
        claims += _of_tensors(survey, kind)
        claims += _of_numbers(survey, kind)
    return tuple(claims)


def _of_tensors(survey: Survey, kind: SeenKind) -> list[Claim]:
    claims = []
    subject = f"{kind.name[0]} in {kind.plural}"
    v = kind.name[0]
    for field, optional in kind.of_type(TENSOR):
        x = f"{v}.{field}"
        guard = f"present({x})" if optional else None
        for name in CHANGERS:
            if survey.event(name) is None:
                continue
            frame = Frame(
                (subject,), None, f"during {name}", subject_conditions(survey, kind, name)
            )
            if optional:
                after = Frame(
                    (subject,), None, f"after {name}", subject_conditions(survey, kind, name)
                )
                claims.append(Claim("change", after, f"present({x})", surprise=1))
                if name == "optimizer.zero_grad":
                    empty = f"not present({x}) or norm({x}) == 0"
                    claims.append(Claim("change", after, empty, surprise=2))
            else:
                claims.append(Claim("change", frame, f"changed({x})", guard, surprise=3))
        if not optional and survey.event("optimizer.step") is not None:
            step = Frame((subject,), None, "each step", subject_conditions(survey, kind, None))
            for keeper in _keepers(survey):
                only = f"changed({x}) only during {keeper}"
                claims.append(Claim("change", step, only, surprise=2))
            claims.append(Claim("change", step, f"not changed({x})", surprise=2))
    return claims


def _keepers(survey: Survey) -> tuple[str, ...]:
    """What may change a tensor: the update, or for running statistics the forward pass."""
    names = [n for n in ("optimizer.step", "forward") if survey.event(n) is not None]
    return tuple(names)


def _of_numbers(survey: Survey, kind: SeenKind) -> list[Claim]:
    v = kind.name[0]
    subject = f"{v} in {kind.plural}"
    claims = []
    for field, optional in kind.of_type(FLOAT, BOOL):
        if optional:
            continue
        x = f"{v}.{field}"
        for name in ("optimizer.step", "backward"):
            if survey.event(name) is None:
                continue
            frame = Frame((subject,), None, f"during {name}", ())
            claims.append(Claim("change", frame, f"{x} == old({x})"))
        if survey.event("scheduler.step") is not None:
            frame = Frame((subject,), None, "during scheduler.step", ())
            claims.append(Claim("change", frame, f"{x} != old({x})", surprise=3))
    return claims


def subject_conditions(survey: Survey, kind: SeenKind, event: str | None) -> tuple[str, ...]:
    """Conditions on one subject of a kind, most general first."""
    v = kind.name[0]
    conditions: list[str] = []
    for field, _ in kind.of_type(BOOL):
        conditions += [f"{v}.{field}", f"not {v}.{field}"]
    for field, optional in kind.of_type(TENSOR):
        if optional:
            x = f"{v}.{field}"
            conditions += [f"present({x})", f"present({x}) and norm({x}) > 0"]
    if kind.name == "parameter" and survey.kind("optimizer") is not None:
        conditions.append(f"{v} in optimizers.parameters")
    seen = survey.event(event) if event else None
    if seen is not None and "lr" in seen.fields and event == "optimizer.step":
        conditions.append("optimizer.step.lr > 0")
    if any(field.name == "module" for field in kind.declaration.fields):
        conditions += [f"isinstance({v}.module, {name})" for name in survey.classes]
    return tuple(conditions)
