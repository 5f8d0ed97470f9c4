"""The functions of the hook points: which rules open, close and are looked at there, in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from tspec.plan.calls import needs_begin
from tspec.plan.events import counted, fields_of, is_windows_call
from tspec.plan.model import Plan, RulePlan
from tspec.plan.reads import Column
from tspec.resolve.program import rules as r
from tspec.resolve.program.types import PASSING
from tspec.targets.bodies import INDENT, comment_of, first_kind, wants
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


def windows_of(plan: Plan, event: str) -> list[int]:
    """The numbers of the patterns of which calls of an event are windows."""
    rules = _of_event(plan, event, "before", "after", "during", "calls")
    return sorted({int(_pattern(plan, one)[1:]) for one in rules})


# --- calls --------------------------------------------------------------------------------------


def _begin(plan: Plan, names: dict[int, str], event: str, suffix: str) -> Hook:
    before = _of_event(plan, event, "before")
    opening = [one for one in _of_event(plan, event, "during", "calls") if needs_begin(one)]
    head = ["e = job.begin_call(call, source)"]
    lines = [f"job.count(e, P{number})" for number in windows_of(plan, event)]
    for one in before:
        lines += _looked_at(plan, one, "before", "e.now")
    for one in opening:
        lines += _opening(plan, one)
    lines += _readings(plan, event)
    lines += _hold(opening, plan, event)
    for one in before:
        lines += _run(one, names)
    lines = [*head, *_shared(plan, [*before, *opening], lines)]
    return Hook(f"begin_{suffix}", "job, call, source", comment(f"{event} begins."), tuple(lines))


def _end(plan: Plan, names: dict[int, str], event: str, suffix: str) -> Hook:
    closing = _of_event(plan, event, "during", "calls", "after")
    head = ["e = job.end_call(call, source)", "if e is None:", f"{INDENT}return"]
    lines: list[str] = []
    for one in closing:
        lines += _looked_at(plan, one, "close_window", "e.now")
    lines += _readings(plan, event)
    lines += _hold([], plan, event)
    for one in closing:
        lines += _run(one, names)
    lines.append("job.leave(e)")
    lines = [*head, *_shared(plan, closing, lines)]
    return Hook(f"end_{suffix}", "job, call, source", comment(f"{event} returns."), tuple(lines))


def _looked_at(plan: Plan, one: RulePlan, method: str, now: str) -> Iterator[str]:
    """Whether a rule is looked at here, and if so what it will read."""
    number, pattern = one.number, _pattern(plan, one)
    kind = one.rule.window.kind
    opened = method == "close_window" and kind != "after" and needs_begin(one)
    yield f"# {comment_of(one.rule)}"
    yield f"w{number} = None"
    yield f"if {f'job.opened(e, {number})' if opened else f'job.looks(e, {number}, {pattern})'}:"
    indent = INDENT
    idle = _idle(plan, one, kind != "during")
    if idle:
        yield f"{INDENT}if not job.logging and ({idle}):"
        yield f"{INDENT * 2}job.idle({number})"
        yield f"{INDENT}else:"
        indent = INDENT * 2
    yield f"{indent}w{number} = job.{method}(e, {number}, {pattern})"
    columns = literal_wants(one.reads.of("now"))
    if columns is not None:
        yield from _want(one, now, columns, indent)


def _opening(plan: Plan, one: RulePlan) -> Iterator[str]:
    """A window opens: what `old` and the condition of a `during` will ask for is read now."""
    number, pattern = one.number, _pattern(plan, one)
    yield f"# {comment_of(one.rule)}"
    yield f"if job.looks(e, {number}, {pattern}):"
    indent = INDENT
    idle = _idle(plan, one, one.rule.window.kind == "during")
    if idle:
        yield f"{INDENT}if not job.logging and ({idle}):"
        yield f"{INDENT * 2}job.idle({number})"
        yield f"{INDENT}else:"
        indent = INDENT * 2
    yield f"{indent}job.open_window(e, {number}, {pattern})"
    columns, kept = literal_wants(one.reads.of("was")), _kept(one)
    if columns:
        yield f"{indent}e.now.want({columns})"
    if kept:
        yield f"{indent}e.now.keep({kept})"


def _idle(plan: Plan, one: RulePlan, guarded: bool) -> str:
    """Python for why a rule's window is idle whatever the state, or nothing."""
    reasons = []
    if one.rule.across:
        reasons.append(f"not job.has_group(e, {one.number}, {_axes(one)})")
    if guarded and one.guard is not None:
        reasons.append(f"{_guard(plan, one)} is False")
    return " or ".join(reasons)


def _axes(one: RulePlan) -> str:
    """The axes of a rule that looks across axes only; none where a field names the group."""
    names = tuple(axis.name for axis in one.rule.across if isinstance(axis, r.Axis))
    return literal(names if len(names) == len(one.rule.across) else ())


def _due(plan: Plan, one: RulePlan, window: str, now: str) -> Iterator[str]:
    """Whether a span of a rule closes here, and if so what it will read."""
    number = one.number
    yield f"# {comment_of(one.rule)}"
    yield f"w{number} = {window}"
    idle = _idle(plan, one, False)
    if idle:
        yield f"if w{number} is not None and not job.logging and ({idle}):"
        yield f"{INDENT}w{number} = job.idle({number})"
    columns = literal_wants(one.reads.of("now"))
    if one.guard is None and columns is None:
        return
    yield f"if w{number} is not None:"
    indent = INDENT
    if one.guard is not None:
        yield f"{INDENT}w{number}.idle = {_guard(plan, one)} is False"
        indent = INDENT * 2
        if columns is not None:
            yield f"{INDENT}if not w{number}.idle:"
    if columns is not None:
        yield from _want(one, now, columns, indent)


def _want(one: RulePlan, now: str, columns: str, indent: str) -> Iterator[str]:
    """Say what a rule will read, if there is a subject for which it will."""
    kind = first_kind(one)
    if kind is None:
        yield f"{indent}{now}.want({columns})"
        return
    yield f"{indent}if {now}.subjects({literal(kind)}):"
    yield f"{indent}{INDENT}{now}.want({columns})"


def _guard(plan: Plan, one: RulePlan) -> str:
    """Python for the part of a condition that reads context and the call alone."""
    assert one.guard is not None
    own = {c.variable: "e.call" for c in one.rule.subjects if is_windows_call(c, one.rule)}
    return Scalars(plan, one, own, window="e").code(one.guard, "e.now")


def _shared(plan: Plan, rules: list[RulePlan], lines: list[str]) -> Iterator[str]:
    """The lines of a hook, in which a guard that several rules have is evaluated once, before them."""
    guards = Counter(_guard(plan, one) for one in rules if one.guard is not None)
    names = {
        guard: f"g{place}"
        for place, guard in enumerate(guard for guard, count in guards.items() if count > 1)
    }
    yield from (f"{name} = {guard}" for guard, name in names.items())
    for line in lines:
        for guard, name in names.items():
            line = line.replace(f"{guard} is False", f"{name} is False")
        yield line


def literal_wants(columns: tuple[Column, ...]) -> str | None:
    """Columns as a literal, or None if there are none."""
    return wants(columns) if columns else None


def _hold(opening: list[RulePlan], plan: Plan, event: str) -> Iterator[str]:
    """Read now what is asked for later."""
    if opening or any(event in one.watched for one in plan.rules):
        yield "e.now.hold()"


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
        columns, kept = literal_wants(one.reads.of("was")), _kept(one)
        idle = _idle(plan, one, False)
        unless = f" and (job.logging or not ({idle}))" if idle else ""
        lines.append(f"o{one.number} = job.opens(e, {one.number}){unless}")
        if columns or kept:
            lines.append(f"if o{one.number}:")
        if columns:
            lines.append(f"{INDENT}e.now.want({columns})")
        if kept:
            lines.append(f"{INDENT}e.next.keep({kept})")
        opened += [f"if o{one.number}:", f"{INDENT}job.open_span(e, {one.number})"]
    for one in rules:
        lines += _run(one, names)
    lines += ["if e.next is None:", f"{INDENT}return", *opened]
    lines.append("e.next.hold()")
    lines = list(_shared(plan, rules, lines))
    doc = "The run begins or ends." if span == "run" else f"A {span} ends, and the next one begins."
    return Hook(f"at_{span}", "job, e", doc, tuple(lines))


def _kept(one: RulePlan) -> str:
    """Kinds and context that `old` will ask for, as arguments; nothing if there are none."""
    kinds = tuple(sorted({kind for frame, kind in one.reads.kinds if frame == "was"}))
    ambients = tuple(sorted({name for frame, name in one.reads.ambients if frame == "was"}))
    return f"{literal(kinds)}, {literal(ambients)}" if kinds or ambients else ""


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
        "over": _over(rule),
        "counts": tuple(sorted({event for one in counted(rule) for event in one.events})),
        "passing": tuple(sorted({kind for _, kind in one.reads.kinds if kind in PASSING})),
    }
    said = {
        name: value for name, value in tail.items() if value or (name == "over" and value == "")
    }
    rest = ", ".join(f"{name}={literal(value)}" for name, value in said.items())
    return f"Declared({head}, responses=({responses}){', ' if rest else ''}{rest})"


def _over(rule: r.Rule) -> str | None:
    """The kind over which a rule that is looked at once goes, one subject at a time; empty for none."""
    if not rule.window.once or rule.across or len(rule.subjects) > 1:
        return None
    kinds = [one.collection.kind for one in rule.subjects if isinstance(one.collection, r.Subjects)]
    if len(kinds) < len(rule.subjects) or any(kind in PASSING for kind in kinds):
        return None
    unfiltered = all(
        not one.collection.filters
        for one in rule.subjects
        if isinstance(one.collection, r.Subjects)
    )
    return (kinds[0] if kinds else "") if unfiltered else None


def _response(response: r.Response) -> str:
    among = None if response.among is None else (response.among.count, response.among.unit)
    values = {
        "action": response.action,
        "consecutive": response.consecutive,
        "frequent": response.frequent,
        "among": among,
    }
    said = {name: value for name, value in values.items() if value is not None}
    return f"Response({', '.join(f'{name}={literal(value)}' for name, value in said.items())})"
