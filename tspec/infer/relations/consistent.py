"""*Consistent*: what is the same across ranks, and between variables (TrainCheck, section 3.3, Consistent)."""

from __future__ import annotations

from tspec.builtin.events import roles_of
from tspec.infer.frames import EVERY, Claim, Frame
from tspec.infer.relations.change import subject_conditions
from tspec.infer.survey import SeenKind, Survey
from tspec.resolve.program.types import BOOL, FLOAT, INT, TENSOR


def propose(survey: Survey) -> tuple[Claim, ...]:
    """Claims across each axis, and between the fields of one subject and of collections."""
    claims: list[Claim] = []
    for axis in survey.axes:
        for kind in survey.kinds:
            claims += _across(survey, kind, axis)
        claims += _calls_across(survey, axis)
    for kind in survey.kinds:
        claims += _between_fields(survey, kind)
    return (*claims, *_membership(survey))


def _across(survey: Survey, kind: SeenKind, axis: str) -> list[Claim]:
    v = kind.name[0]
    subject = f"{v} in {kind.plural}"
    windows = ["each step"]
    if kind.name in ("parameter", "state") and survey.event("optimizer.step") is not None:
        windows = ["before optimizer.step", "after optimizer.step"]
    claims = []
    conditions = subject_conditions(survey, kind, None)
    tensors = kind.of_type(TENSOR)
    for field, optional in (*tensors, *kind.of_type(FLOAT, INT, BOOL)):
        x = f"{v}.{field}"
        guard = f"present({x})" if optional else None
        for window in windows:
            if optional == (window == "after optimizer.step"):
                continue
            often = f"{window} {EVERY}" if (field, optional) in tensors else window
            frame = Frame((subject,), axis, often, conditions)
            claims.append(Claim("consistent", frame, f"same({x})", guard, surprise=3))
    if kind.name == "batch":
        frame = Frame((subject,), axis, "each step", ())
        for relation in ("same", "distinct"):
            claims.append(
                Claim("consistent", frame, f"{relation}(digest({v}.tensors))", surprise=3)
            )
    return claims


def _calls_across(survey: Survey, axis: str) -> list[Claim]:
    claims = []
    step = Frame((), axis, "each step", ())
    for event in survey.events:
        if event.landmark and roles_of(event.name).paces_ranks:
            claims.append(
                Claim("consistent", step, f"same(count(calls({event.name})))", surprise=2)
            )
        for field in event.declaration.fields:
            if event.landmark and field.name in event.fields and field.type in (FLOAT, INT, BOOL):
                frame = Frame((), axis, f"during {event.name}", ())
                value = f"{event.name}.{field.name}"
                claims.append(Claim("consistent", frame, f"same({value})", surprise=3))
    return claims


def _between_fields(survey: Survey, kind: SeenKind) -> list[Claim]:
    """Pairs of tensors of one subject agree in dtype and shape, and lists of tensors on a device."""
    v = kind.name[0]
    subject = f"{v} in {kind.plural}"
    tensors = kind.of_type(TENSOR)
    claims: list[Claim] = []
    if survey.event("optimizer.step") is None:
        return claims
    frame = Frame((subject,), None, "before optimizer.step", subject_conditions(survey, kind, None))
    for index, (first, first_optional) in enumerate(tensors):
        for second, second_optional in tensors[index + 1 :]:
            a, b = f"{v}.{first}", f"{v}.{second}"
            guards = [f"present({x})" for x, o in ((a, first_optional), (b, second_optional)) if o]
            for feature in ("dtype", "shape"):
                claims.append(
                    Claim(
                        "consistent",
                        frame,
                        f"{a}.{feature} == {b}.{feature}",
                        " and ".join(guards) or None,
                    )
                )
    return claims


def _membership(survey: Survey) -> list[Claim]:
    """Who holds which parameter: the optimizers the model's, the models the optimizer's."""
    needed = ("parameter", "optimizer", "module")
    if any(survey.kind(name) is None for name in needed) or survey.event("optimizer.step") is None:
        return []
    parameter = survey.kind("parameter")
    assert parameter is not None
    conditions = subject_conditions(survey, parameter, None)
    held = tuple(c for c in conditions if "optimizers" not in c)
    each = Frame(("p in parameters",), None, "before optimizer.step", held)
    both = Frame(
        ("o in optimizers", "p in o.parameters"), None, "before optimizer.step(optimizer: o)", held
    )
    return [
        Claim("consistent", each, "p in optimizers.parameters", surprise=3),
        Claim("consistent", both, "p in models.parameters", surprise=3),
        Claim("consistent", each, "present(p.grad)", surprise=2),
        Claim("consistent", each, "finite(p.grad)", "present(p.grad)", surprise=2),
    ]
