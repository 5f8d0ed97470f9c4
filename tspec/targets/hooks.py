"""The functions of the hook points: which rules open, close and are looked at there, in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tspec.plan.build import Plan, RulePlan, fields_of, is_windows_call
from tspec.plan.reads import Column
from tspec.resolve import rules as r
from tspec.targets.bodies import INDENT, comment_of, wants
from tspec.targets.literals import comment, identifier, literal
from tspec.targets.scalars import Scalars

SPANS = ("step", "microbatch", "epoch", "run")


@dataclass(frozen=True, slots=True)
class Hook:
    """One function of the generated module."""

    name: str
    parameters: str
    doc: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Hooks:
    """All of them: by event, by span, and at the end."""

    begins: tuple[tuple[str, Hook], ...]
    ends: tuple[tuple[str, Hook], ...]
    spans: tuple[tuple[str, Hook], ...]


def hooks(plan: Plan, names: dict[int, str]) -> Hooks:
    """The hook functions of a plan. `names` are those of the rules' functions."""
    events = sorted(plan.kept)
    unique = {event: f"{place}_{identifier(event)}" for place, event in enumerate(events)}
    begins = tuple((event, _begin(plan, names, event, unique[event])) for event in events)
    ends = tuple((event, _end(plan, names, event, unique[event])) for event in events)
    spans = tuple(
        (span, _span(plan, names, span)) for span in SPANS if _spans(plan, span) or span == "step"
    )
    return Hooks(begins, ends, spans)


def _of_event(plan: Plan, event: str, *kinds: str) -> list[RulePlan]:
    return [
        one
        for one in plan.rules
        if one.rule.window.kind in kinds
        and one.rule.window.event is not None
        and event in one.rule.window.event.events
    ]


def _pattern(plan: Plan, rule: RulePlan) -> str:
    event = rule.rule.window.event
    assert event is not None
    return f"P{plan.pattern(event.events, fields_of(event)).number}"


# --- calls --------------------------------------------------------------------------------------


def _begin(plan: Plan, names: dict[int, str], event: str, suffix: str) -> Hook:
    before = _of_event(plan, event, "before")
    opening = _of_event(plan, event, "during", "calls", "after")
    lines = ["e = job.begin_call(call, source)"]
    windows = _of_event(plan, event, "before", "after", "during", "calls")
    for number in sorted({_pattern(plan, one) for one in windows}):
        lines.append(f"job.count(e, {number})")
    for one in before:
        lines += _due(plan, one, f"job.before(e, {one.number}, {_pattern(plan, one)})", "e.now")
    for one in opening:
        lines += _opening(plan, one)
    lines += _readings(plan, event)
    lines += _hold([one for one in opening if one.rule.window.kind != "after"], plan, event)
    for one in before:
        lines += _run(one, names)
    return Hook(f"begin_{suffix}", "job, call, source", comment(f"{event} begins."), tuple(lines))


def _end(plan: Plan, names: dict[int, str], event: str, suffix: str) -> Hook:
    closing = _of_event(plan, event, "during", "calls", "after")
    lines = ["e = job.end_call(call, source)"]
    lines += ["if e is None:", f"{INDENT}return"]
    for one in closing:
        lines += _due(plan, one, f"job.close_call(e, {one.number})", "e.now")
    lines += _readings(plan, event)
    lines += _hold([], plan, event)
    for one in closing:
        lines += _run(one, names)
    lines.append("job.leave(e)")
    return Hook(f"end_{suffix}", "job, call, source", comment(f"{event} returns."), tuple(lines))


def _due(plan: Plan, one: RulePlan, window: str, now: str) -> Iterator[str]:
    """Whether a rule is looked at here, and if so what it will read."""
    yield f"# {comment_of(one.rule)}"
    yield f"w{one.number} = {window}"
    columns = literal_wants(one.reads.of("now"))
    guarded = one.guard is not None and one.rule.window.kind != "during"
    if not guarded and columns is None:
        return
    yield f"if w{one.number} is not None:"
    if guarded:
        code = _guard(plan, one, "end")
        yield f"{INDENT}w{one.number}.idle = {code} is False"
    if columns is not None:
        yield (
            f"{INDENT}if not w{one.number}.idle:" if one.guard is not None else f"{INDENT}if True:"
        )
        yield f"{INDENT * 2}{now}.want({columns})"


def _guard(plan: Plan, one: RulePlan, frame: str) -> str:
    """Python for the part of a condition that reads context alone."""
    assert one.guard is not None
    window = f"w{one.number}"
    own = {c.variable: f"{window}.call" for c in one.rule.subjects if is_windows_call(c, one.rule)}
    return Scalars(plan, one, own, window=window).code(one.guard, f"{window}.{frame}")


def literal_wants(columns: tuple[Column, ...]) -> str | None:
    """Columns as a literal, or None if there are none."""
    return wants(columns) if columns else None


def _opening(plan: Plan, one: RulePlan) -> Iterator[str]:
    """A window opens: what `old` and the condition of a `during` will ask for is read now."""
    yield f"# {comment_of(one.rule)}"
    yield f"w{one.number} = job.open(e, {one.number}, {_pattern(plan, one)})"
    columns = literal_wants(one.reads.of("was"))
    guarded = one.guard is not None and one.rule.window.kind == "during"
    if one.rule.window.kind == "after" or (not guarded and columns is None):
        return
    yield f"if w{one.number} is not None:"
    if guarded:
        code = _guard(plan, one, "was")
        yield f"{INDENT}w{one.number}.idle = {code} is False"
    if columns is not None:
        yield f"{INDENT}if not w{one.number}.idle:" if guarded else f"{INDENT}if True:"
        yield f"{INDENT * 2}e.now.want({columns})"


def _hold(opening: list[RulePlan], plan: Plan, event: str) -> Iterator[str]:
    """Read now what is asked for later."""
    kinds = sorted({kind for one in opening for frame, kind in one.reads.kinds if frame == "was"})
    ambients = sorted(
        {name for one in opening for frame, name in one.reads.ambients if frame == "was"}
    )
    watched = any(event in one.watched for one in plan.rules)
    if kinds or ambients or watched or any(one.reads.of("was") for one in opening):
        yield f"e.now.hold({literal(tuple(kinds))}, {literal(tuple(ambients))})"


def _readings(plan: Plan, event: str) -> Iterator[str]:
    for one in plan.rules:
        if event in one.watched:
            yield f"# {comment_of(one.rule)}"
            yield f"job.read(e, {one.number}, {wants(one.reads.of('now'))})"


def _run(one: RulePlan, names: dict[int, str]) -> Iterator[str]:
    yield f"if w{one.number} is not None:"
    yield f"{INDENT}job.run({names[one.number]}, {one.number}, w{one.number})"


# --- spans --------------------------------------------------------------------------------------


def _spans(plan: Plan, span: str) -> list[RulePlan]:
    return [
        one for one in plan.rules if one.rule.window.kind == "each" and one.rule.window.span == span
    ]


def _span(plan: Plan, names: dict[int, str], span: str) -> Hook:
    rules = _spans(plan, span)
    lines: list[str] = []
    for one in rules:
        lines += _due(plan, one, f"job.close_span(e, {one.number})", "e.now")
    opened: list[str] = []
    for one in rules:
        columns = literal_wants(one.reads.of("was")) or "()"
        lines += [f"o{one.number} = job.opens(e, {one.number})", f"if o{one.number}:"]
        lines.append(f"{INDENT}e.now.want({columns})")
        opened += [f"if o{one.number}:", f"{INDENT}job.open_span(e, {one.number})"]
    for one in rules:
        lines += _run(one, names)
    lines += ["if e.next is None:", f"{INDENT}return", *opened]
    kinds = sorted({kind for one in rules for frame, kind in one.reads.kinds if frame == "was"})
    ambients = sorted(
        {name for one in rules for frame, name in one.reads.ambients if frame == "was"}
    )
    lines.append(f"e.next.hold({literal(tuple(kinds))}, {literal(tuple(ambients))})")
    doc = "The run begins or ends." if span == "run" else f"A {span} ends, and the next one begins."
    return Hook(f"at_{span}", "job, e", doc, tuple(lines))


def declared(one: RulePlan, text: str) -> str:
    """What generated code says of a rule, as a call."""
    rule, window = one.rule, one.rule.window
    every = None if window.every is None else (window.every.count, window.every.unit)
    responses = "".join(f"{_response(each)}, " for each in rule.responses).rstrip()
    position = rule.source.position(rule.span.start)
    values = {
        "number": one.number,
        "name": rule.qualified,
        "file": rule.source.path,
        "line": position.line,
        "text": text,
        "draft": rule.draft,
        "kind": window.kind,
    }
    head = ", ".join(f"{name}={literal(value)}" for name, value in values.items())
    tail = {
        "every": every,
        "span": window.span,
        "once": window.once,
        "across": bool(rule.across),
        "early": isinstance(rule.expect, (r.Contains, r.Ordered)),
        "when": rule.when is not None,
        "history": one.history,
    }
    rest = ", ".join(f"{name}={literal(value)}" for name, value in tail.items() if value)
    return f"Declared({head}, responses=({responses}){', ' if rest else ''}{rest})"


def _response(response: r.Response) -> str:
    among = None if response.among is None else (response.among.count, response.among.unit)
    values = (response.action, response.consecutive, response.frequent, among)
    return f"Response({', '.join(map(literal, values))})"
