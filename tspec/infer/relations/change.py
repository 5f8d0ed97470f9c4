"""*Event contains* for state: what a call changes, what nothing else does, and what stays as it is.

TrainCheck's EventContain with a variable's change inside a call (section 3.3).
"""

from __future__ import annotations

from tspec.infer.frames import Claim, Frame
from tspec.infer.survey import SeenKind, Survey
from tspec.resolve.types import BOOL, TENSOR

CHANGERS = (
    "optimizer.step",
    "scheduler.step",
    "backward",
    "optimizer.zero_grad",
    "load_state_dict",
)
"""Events that exist to change state; an effect of another (a dropout's on a weight) would be a coincidence."""


def propose(survey: Survey) -> tuple[Claim, ...]:
    """Claims about every tensor of every kind, in the windows of the events that change state."""
    return tuple(claim for kind in survey.kinds for claim in _of_kind(survey, kind))


def _of_kind(survey: Survey, kind: SeenKind) -> list[Claim]:
    v = kind.name[0]
    subject = f"{v} in {kind.plural}"
    changers = [name for name in CHANGERS if survey.event(name) is not None]
    claims = []
    for field, optional in kind.of_type(TENSOR):
        x = f"{v}.{field}"
        if optional:
            if "optimizer.zero_grad" in changers:
                frame = Frame((subject,), None, "after optimizer.zero_grad", ())
                empty = f"not present({x}) or norm({x}) == 0"
                claims.append(Claim("change", frame, empty, surprise=2))
            continue
        for name in changers:
            conditions = subject_conditions(survey, kind, name)
            frame = Frame((subject,), None, f"during {name}", conditions)
            guard = _moved_by_gradient(survey, kind, name)
            claims.append(Claim("change", frame, f"changed({x})", guard, surprise=3))
        claims += _kept(survey, kind, x)
    return claims


def _moved_by_gradient(survey: Survey, kind: SeenKind, event: str) -> str | None:
    """An update of rate zero, or with a gradient of zero, rightly changes nothing, seen or not."""
    update = survey.event("optimizer.step") if event == "optimizer.step" else None
    if update is None or "grad" not in kind.fields:
        return None
    gradient = f"present({kind.name[0]}.grad) and norm({kind.name[0]}.grad) > 0"
    return f"{gradient} and optimizer.step.lr > 0" if "lr" in update.fields else gradient


def _kept(survey: Survey, kind: SeenKind, x: str) -> list[Claim]:
    """Only an update changes it, or for running statistics a forward pass, or nothing does."""
    subject = f"{kind.name[0]} in {kind.plural}"
    frame = Frame((subject,), None, "each step", subject_conditions(survey, kind, None))
    changers = [name for name in ("optimizer.step", "forward") if survey.event(name) is not None]
    only = [f"changed({x}) only during {name}" for name in changers]
    return [Claim("change", frame, claim, surprise=2) for claim in [*only, f"not changed({x})"]]


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
