"""*Consistent*: values that are equal across ranks, and between variables (TrainCheck, section 3.3,
Consistent).
"""

from __future__ import annotations

from tspec.builtin.events import roles_of
from tspec.infer import main_copies
from tspec.infer.heads import EVERY, Claim, RuleHead, both
from tspec.infer.loop import is_inner, is_of_the_loop
from tspec.infer.relations.change import subject_conditions
from tspec.infer.survey import SeenKind, Survey
from tspec.resolve.program.types import BOOL, FLOAT, INT, TENSOR, Optional

DRIFT = "Ranks that hold copies and differ train different models, which averaging gradients hides."
UNEVEN = "Ranks that call it unequally often wait for each other for ever, or run apart."
OF_MODELS = ("parameter", "module")
SETTINGS = ("requires_grad",)
"""Settings of parameters and modules.

Their other flags and numbers say how they are placed, or which rank updates them: they are conditions.
"""
BATCHES = {
    "same": "Ranks that work on one batch together read different ones.",
    "distinct": "Ranks that read the same batch do the work of one.",
}


def propose(survey: Survey) -> tuple[Claim, ...]:
    """Claims across each axis, and on membership in models and optimizers."""
    claims: list[Claim] = []
    for axis in survey.axes:
        for kind in survey.kinds:
            claims += _across(survey, kind, axis)
        claims += _calls_across(survey, axis)
    return (*claims, *_membership(survey))


def _across(survey: Survey, kind: SeenKind, axis: str) -> list[Claim]:
    v = kind.name[0]
    subject = f"{v} in {kind.plural}"
    claims = []
    conditions = subject_conditions(survey, kind, None)
    for field, optional in kind.of_type(TENSOR):
        if not main_copies.compared(survey, kind, field):
            continue
        x = f"{v}.{field}"
        window = _window(survey, kind, field, optional)
        if window is None:
            continue
        copied = main_copies.guard(survey, axis, optional) if kind.name == "parameter" else None
        guard = both(f"present({x})" if optional else None, copied)
        head = RuleHead((subject,), axis, f"{window} {EVERY}", conditions)
        claims.append(Claim("consistent", head, f"same({x})", DRIFT, guard, surprise=3))
    for field, optional in kind.of_type(FLOAT, INT, BOOL):
        window = _window(survey, kind, field, optional)
        if window is None or (kind.name in OF_MODELS and field not in SETTINGS):
            continue
        x = f"{v}.{field}"
        guard = f"present({x})" if optional else None
        head = RuleHead((subject,), axis, window, conditions)
        claims.append(Claim("consistent", head, f"same({x})", DRIFT, guard, surprise=3))
    if kind.name == "batch":
        head = RuleHead((subject,), axis, "each step", ())
        for relation in ("same", "distinct"):
            expect = f"{relation}(digest({v}.tensors))"
            claims.append(Claim("consistent", head, expect, BATCHES[relation], surprise=3))
    return claims


def _window(survey: Survey, kind: SeenKind, field: str, optional: bool) -> str | None:
    """The window in which replicas are compared: gradients before their use, updated state after
    the update.

    None for other fields: they are fixed at construction, or belong to each rank, as a buffer's
    data.
    """
    if kind.name == "parameter" and (own := main_copies.window(survey, field)) is not None:
        return own
    if kind.name == "state" and main_copies.are_kept(survey):  # its names are each rank's own
        return None
    if kind.name in ("parameter", "state") and survey.event("optimizer.step") is not None:
        return "before optimizer.step" if optional else "after optimizer.step"
    return "each step" if optional else None


def _calls_across(survey: Survey, axis: str) -> list[Claim]:
    claims = []
    step = RuleHead((), axis, "each step", ())
    for event in survey.events:
        if event.landmark and roles_of(event.name).paces_ranks and not is_inner(survey, event):
            expect = f"same(count(calls({event.name})))"
            claims.append(Claim("consistent", step, expect, UNEVEN, surprise=2))
        for field in event.declaration.fields:
            if not (event.landmark and is_of_the_loop(event)):
                continue
            optional = isinstance(field.type, Optional)
            plain = field.type.item if isinstance(field.type, Optional) else field.type
            if plain == FLOAT and field.source is not None and field.source[0] == "call":
                continue  # it is measured: equal ranks have it within rounding
            if field.name in event.fields and plain in (FLOAT, INT, BOOL):
                head = RuleHead((), axis, f"during {event.name}", ())
                value = f"{event.name}.{field.name}"
                guard = f"present({value})" if optional else None
                claims.append(Claim("consistent", head, f"same({value})", DRIFT, guard, surprise=3))
    return claims


def _membership(survey: Survey) -> list[Claim]:
    """Claims that optimizers hold the model's parameters, and models the optimizers' parameters."""
    needed = ("parameter", "optimizer", "module")
    if any(survey.kind(name) is None for name in needed) or survey.event("optimizer.step") is None:
        return []
    parameter = survey.kind("parameter")
    assert parameter is not None
    conditions = subject_conditions(survey, parameter, None)
    apart = tuple(c for c in conditions if "optimizers" not in c)
    each = RuleHead(("p in parameters",), None, "before optimizer.step", apart)
    held_by = RuleHead(
        ("o in optimizers", "p in o.parameters"), None, "before optimizer.step(optimizer: o)", apart
    )
    held = "A parameter that no optimizer holds is never trained, whatever gradients it gets."
    stale = "An optimizer that holds tensors of no model trains what nobody uses."
    cut = "A parameter without gradient is cut off from the loss, and is not trained."
    spreads = "A NaN or infinity in a gradient spreads to the parameters with this update."
    kept = main_copies.are_kept(survey)
    x = f"p.{main_copies.MAIN_GRAD}" if kept else "p.grad"
    finite = Claim("consistent", each, f"finite({x})", spreads, f"present({x})", surprise=2)
    if kept:
        own = both("not present(p.main)", main_copies.whole(parameter))
        return [
            Claim("consistent", each, "p in optimizers.parameters", held, own, surprise=3),
            finite,
        ]
    return [
        Claim("consistent", each, "p in optimizers.parameters", held, surprise=3),
        Claim("consistent", held_by, "p in models.parameters", stale, surprise=3),
        Claim("consistent", each, f"present({x})", cut, "p in optimizers.parameters", surprise=2),
        finite,
    ]
