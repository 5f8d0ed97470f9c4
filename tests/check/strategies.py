"""Random rules, well typed by construction, as text over the vocabulary of `vocabulary.py`.

`case(n)` is the n-th rule and job; `spec(bodies)` is the text of a spec, and `loaded(text)` its
rules. `jobs.job(shape)` makes the trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from tests.check.conditions import Place, condition, tensors, units, word
from tests.check.jobs import Shape, random_shape
from tests.check.vocabulary import VOCABULARY
from tspec.resolve import load_text
from tspec.resolve.program.rules import Rule

SUBJECTS: Sequence[Sequence[tuple[str, str, str]]] = (
    (),
    (),
    (("p", "parameters", "parameter"),),
    (("p", "parameters", "parameter"),),
    (("p", "parameters(requires_grad: true)", "parameter"),),
    (("m", "modules", "module"),),
    (("m", "modules(class: torch.nn.Module)", "module"), ("p", "m.parameters", "parameter")),
    (("b", "batches", "batch"),),
    (("b", "batches", "batch"), ("t", "b.tensors", "tensor")),
)
CALLS: Sequence[tuple[str, str]] = (
    ("calls(forward)", "forward"),
    ("calls(update)", "update"),
    ("calls(update, ok: true)", "update"),
    ("calls(forward, update)", ""),
)
EVENTS = ("forward", "update", "update", "update", "save")


def body(draw: Random) -> str:
    """The body of one invariant."""
    clauses = list(draw.choice(SUBJECTS))
    across = draw.choice(["", "", "", "dp", "dp", "tp", "world", "tp, dp"])
    window, place = _window(draw, clauses)
    if place.window == "calls" or (place.has_calls and draw.randint(0, 4) == 0):
        name, event = draw.choice(CALLS)
        filtered = [each for each, _, kind in clauses if kind == "module"]
        if filtered and event and draw.random() < 0.5:
            name = f"calls({event}, module: {filtered[0]})"
        clauses.append(("c", name, event))
        if event == "forward" and across and draw.random() < 0.5:
            across = "c.group"
    elif (
        across == "dp"
        and any(kind == "parameter" for _, _, kind in clauses)
        and draw.random() < 0.5
    ):
        across = "p.ranks"
    if draw.random() < 0.2:
        place = replace(place, unit=draw.choice(["step", "epoch", "microbatch"]))
    variables = {name: kind for name, _, kind in clauses}
    place = replace(place, variables=variables, across=bool(across))
    lines = [f"for {name} in {collection}" for name, collection, _ in clauses]
    lines += [f"across {across}"] if across else []
    lines += [window] if window else []
    if draw.randint(0, 2):
        lines.append(f"when {condition(draw, replace(place, clause='when'), draw.randint(0, 2))}")
    lines.append(f"expect {_claim(draw, place)}")
    return "\n".join(f"  {line}" for line in lines)


def _window(draw: Random, clauses: Sequence[tuple[str, str, str]]) -> tuple[str, Place]:
    kind = draw.choice(["before", "after", "during", "during", "each", "each", "calls"])
    if kind == "calls":
        return "", Place(window="calls")
    if kind == "each":
        span = draw.choice(["step", "step", "step", "microbatch", "epoch", "run"])
        thin = (
            "" if span == "run" else word(draw, "", "", "", " once", f" every 2 {units(span, 2)}")
        )
        return f"each {span}{thin}", Place(window="each", unit="step" if span == "run" else span)
    event = draw.choice(EVENTS)
    filters = [f"(module: {name})" for name, _, of in clauses if of == "module" and event != "save"]
    filters += ["(ok: true)"] if event == "update" and kind != "before" else []
    shown = event + (word(draw, *filters) if filters and draw.random() < 0.5 else "")
    units_ = word(draw, "steps", "steps", "epochs", "microbatches")
    thin = word(draw, "", "", "", " once", f" every 2 {units_}")
    return f"{kind} {shown}{thin}", Place(window=kind, event=event)


def _claim(draw: Random, place: Place) -> str:
    way = draw.randint(0, 9)
    event = word(draw, "forward", "update", "save", "update(ok: true)", 'save(tag: "best")')
    other = word(draw, *(each for each in ("forward", "update", "save") if each not in event))
    if way == 0:
        return f"contains {event}"
    if way == 1:
        third = " before update" if draw.randint(0, 2) == 0 and other != "update" else ""
        return f"{event} before {other}{third}"
    if way == 2:
        changing = [each for each in tensors(place) if each == "p.data" and place.has_start]
        changing += [name for name, kind in place.variables.items() if name == "c"]
        if changing:
            subject = word(draw, *changing)
            subject = subject if subject == "c" else f"changed({subject})"
            return f"{subject} only during {event}{word(draw, '', f' or {other}')}"
    return condition(draw, place, draw.randint(1, 4))


def case(number: int) -> tuple[str, Shape]:
    """The n-th random rule and job.

    Of seeds that count up: hypothesis comes back to the same few, and finds no smaller rule here
    than `agreement.py` finds smaller traces.
    """
    dice = Random(f"case {number}")
    return body(dice), random_shape(dice)


def spec(bodies_: Sequence[str]) -> str:
    """The text of a spec of these invariants."""
    rules = [f"invariant r{place} {{\n{body}\n}}" for place, body in enumerate(bodies_)]
    return "\n\n".join([VOCABULARY, *rules])


def loaded(text: str) -> Sequence[Rule]:
    """The rules of a spec; those that the type checker refuses are left out."""
    found = load_text(text)
    if found.program is not None:
        return found.program.rules
    head, *parts = text.split("\n\ninvariant ")
    rules: list[Rule] = []
    for part in parts:
        alone = load_text(f"{head}\n\ninvariant {part}")
        if alone.program is not None:
            rules += alone.program.rules
    return rules
