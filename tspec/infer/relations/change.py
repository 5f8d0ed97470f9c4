"""*Event contains* for state: the state that a call changes, that no other call changes, and that
stays unchanged.


TrainCheck's EventContain with a variable's change inside a call (section 3.3).
"""

from __future__ import annotations

from tspec.builtin.events import EVENTS
from tspec.infer.heads import EVERY, Claim, RuleHead
from tspec.infer.main_copies import update_of, whole
from tspec.infer.survey import SeenKind, Survey
from tspec.resolve.program.types import BOOL, TENSOR

PATIENCE = "20 steps"

DRAWN = ("generator",)
"""Kinds whose state is random numbers. Each program draws from them in its own way."""

LOADING = "load_state_dict"
"""Loading changes nothing where the last epoch was the best, or a target was brought into line before: in another run it does."""

STUCK = {
    "optimizer.step": "A tensor that no update moves is not trained.",
    "backward": "A tensor that the backward pass changed in sound runs stays as it is.",
}
STUCK_STATE = (
    "The optimizer's state stays as it is: its parameter gets no gradient, or one that is zero."
)
OTHERWISE = "`{event}` leaves unchanged what it changes in sound runs."


def propose(survey: Survey) -> tuple[Claim, ...]:
    """Claims about every tensor of every kind, in the windows of the events that change state."""
    kinds = [kind for kind in survey.kinds if kind.name not in DRAWN]
    return tuple(claim for kind in kinds for claim in _of_kind(survey, kind))


def _of_kind(survey: Survey, kind: SeenKind) -> list[Claim]:
    v = kind.name[0]
    subject = f"{v} in {kind.plural}"
    changers = [
        name
        for name, roles in EVENTS.items()
        if roles.changes_state and name != LOADING and survey.event(name) is not None
    ]
    claims = []
    for field, optional in kind.of_type(TENSOR):
        x = f"{v}.{field}"
        if optional:
            if "optimizer.zero_grad" in changers:
                head = RuleHead((subject,), None, "after optimizer.zero_grad", ())
                empty = f"not present({x}) or norm({x}) == 0"
                left = "Gradients that are left are added to those of the next backward pass."
                claims.append(Claim("change", head, empty, left, surprise=2))
            continue
        for name in changers:
            conditions = subject_conditions(survey, kind, name)
            head = RuleHead((subject,), None, f"during {name} {EVERY}", conditions)
            expect, guard = _changes(survey, kind, name, x)
            stuck = STUCK.get(name, OTHERWISE.format(event=name))
            if kind.name == "state" and name == "optimizer.step":
                stuck = STUCK_STATE
            claims.append(Claim("change", head, expect, stuck, guard, surprise=_surprise(kind)))
        claims += _kept(survey, kind, x)
    return claims


def _surprise(kind: SeenKind) -> int:
    """How informative the claim is: the optimizer's own state always changes in its update, other state need not."""
    return 1 if kind.name == "state" else 3


def _changes(survey: Survey, kind: SeenKind, event: str, x: str) -> tuple[str, str | None]:
    """The claim that a call changes x, and the guard without which it would be too strong.

    A single update may round to nothing, and one below the precision of its parameter always does.
    """
    if event != "optimizer.step":
        return f"changed({x})", None
    soon = f"any(changed({x}), over: {PATIENCE})"
    update = survey.event(event)
    if update is None or "grad" not in kind.fields or "lr" not in update.fields:
        return soon, None
    gradient = f"{kind.name[0]}.grad"
    felt = f"optimizer.step.lr * norm({gradient}) > 4 * ulp(float32) * norm({x})"
    return soon, f"present({gradient}) and {felt}"


def _kept(survey: Survey, kind: SeenKind, x: str) -> list[Claim]:
    """Claims about what may change it: only an update, only a forward pass for running statistics, or nothing."""
    subject = f"{kind.name[0]} in {kind.plural}"
    head = RuleHead((subject,), None, f"each step {EVERY}", subject_conditions(survey, kind, None))
    frozen = "What stays fixed in sound runs is trained or overwritten."
    claims = [Claim("change", head, f"not changed({x})", frozen, surprise=2)]
    within = []
    if survey.event("forward") is not None:
        # A wrapper brings running statistics into line before it calls the module.
        within.append("forward or wrapper.forward")
    if survey.event("optimizer.step") is not None:
        within.append(update_of(survey))
    guard = whole(kind)  # a sharded tensor may be gathered later
    loading = f" or {LOADING}" if survey.event(LOADING) is not None else ""
    for events in within:
        expect = f"changed({x}) only during {events}{loading}"
        outside = "Something else writes into it, and undoes or adds to what training does."
        witness = f"changed({x})"
        claims.append(Claim("change", head, expect, outside, guard, surprise=2, witness=witness))
    return claims


def subject_conditions(survey: Survey, kind: SeenKind, event: str | None) -> tuple[str, ...]:
    """Conditions on one subject of a kind, most general first."""
    v = kind.name[0]
    conditions: list[str] = []
    for field, optional in kind.of_type(BOOL):
        if not optional:
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
