"""The functions of the hook points: the rules that open, close and are evaluated there, in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass

from tspec.builtin.kinds import PASSING
from tspec.diagnostics import with_article
from tspec.plan.calls import needs_begin
from tspec.plan.events import counted, fields_of, is_windows_call
from tspec.plan.model import Plan, RulePlan
from tspec.plan.reads import Frame
from tspec.reasons import no_group
from tspec.resolve.program import rules as r
from tspec.resolve.program.failures import failure
from tspec.resolve.program.queries import group_names
from tspec.targets.bodies import INDENT, comment_of
from tspec.targets.idle import (
    are_any,
    choices,
    conditions_of,
    conditions_on_place,
    counted_at_hook,
    lookers_in_windows,
    may_pass,
    unread_conditions,
    windows_on,
)
from tspec.targets.literals import comment, identifier, literal
from tspec.targets.scalars import Scalars
from tspec.targets.settled import settled_over
from tspec.targets.wants import wants_name

SPANS = ("step", "microbatch", "epoch", "run")


@dataclass(frozen=True, slots=True)
class HookFunction:
    """One function of the generated module."""

    name: str
    parameters: str
    doc: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HookFunctions:
    """All of them: by event, by span, and at the end."""

    begins: tuple[tuple[str, HookFunction], ...]
    ends: tuple[tuple[str, HookFunction], ...]
    spans: tuple[tuple[str, HookFunction], ...]
    passes: tuple[tuple[str, HookFunction], ...]
    """Hooks of events whose calls are only counted while no rule reads anything of them."""


def hooks(plan: Plan, names: dict[int, str]) -> HookFunctions:
    """The hook functions of a plan. `names` are the names of the rules' functions."""
    events = sorted(plan.kept)
    unique = {event: f"{place}_{identifier(event)}" for place, event in enumerate(events)}
    begins = tuple((event, _begin(plan, names, event, unique[event])) for event in events)
    ends = tuple((event, _end(plan, names, event, unique[event])) for event in events)
    spans = tuple(
        (span, _span(plan, names, span)) for span in SPANS if _spans(plan, span) or span == "step"
    )
    passes = tuple(
        (event, _pass(plan, names, event, unique[event]))
        for event in events
        if may_pass(plan, event)
    )
    return HookFunctions(begins, ends, spans, passes)


def _of_event(plan: Plan, event: str, *kinds: str) -> list[RulePlan]:
    return [one for one in windows_on(plan, event) if one.rule.window.kind in kinds]


def _pattern(plan: Plan, rule: RulePlan) -> str:
    event = rule.rule.window.event
    assert event is not None
    return f"P{plan.pattern(event.events, fields_of(event)).number}"


def windows_of(plan: Plan, event: str) -> list[int]:
    """The numbers of the patterns that make calls of the event windows."""
    return sorted({int(_pattern(plan, one)[1:]) for one in windows_on(plan, event)})


# --- calls --------------------------------------------------------------------------------------


def _begin(plan: Plan, names: dict[int, str], event: str, suffix: str) -> HookFunction:
    before = _of_event(plan, event, "before")
    opening = [one for one in _of_event(plan, event, "during", "calls") if needs_begin(one)]
    head = ["e = tracker.begin_call(call, source)", *_unread(plan, event)]
    lines = [f"tracker.count(e, P{number})" for number in windows_of(plan, event)]
    for one in before:
        lines += _looked_at(plan, one, "before", "e.now")
    for one in opening:
        lines += _opening(plan, one)
    lines += _readings(plan, event)
    lines += _hold(opening, plan, event)
    for one in before:
        lines += _run(one, names)
    lines = [*head, *_shared(plan, [*before, *opening], lines)]
    return HookFunction(
        f"begin_{suffix}", "tracker, call, source", comment(f"{event} begins."), tuple(lines)
    )


def _unread(plan: Plan, event: str) -> Iterator[str]:
    """Skip the fields of a call that only later look-ups read, in steps in which no rule looks it
    up.
    """
    conditions = dict.fromkeys(
        Scalars(plan, one, window="e").code(guard, "e.now")
        for one, guard in unread_conditions(plan, event)
    )
    before = ""
    for condition in conditions:  # a line for each: one of all would have no bracket to break it in
        yield f"e.call.unread = {before}{condition} is False"
        before = "e.call.unread and "


def _end(plan: Plan, names: dict[int, str], event: str, suffix: str) -> HookFunction:
    closing = _of_event(plan, event, "during", "calls", "after")
    head = ["e = tracker.end_call(call, source)", "if e is None:", f"{INDENT}return"]
    lines: list[str] = []
    for one in closing:
        lines += _looked_at(plan, one, "close_window", "e.now")
    lines += _readings(plan, event)
    lines += _hold([], plan, event)
    for one in closing:
        lines += _run(one, names)
    lines.append("tracker.leave(e)")
    lines = [*head, *_shared(plan, closing, lines)]
    return HookFunction(
        f"end_{suffix}", "tracker, call, source", comment(f"{event} returns."), tuple(lines)
    )


def _pass(plan: Plan, names: dict[int, str], event: str, suffix: str) -> HookFunction:
    conditions = dict.fromkeys(
        Scalars(plan, one, window="").code(guard, "now")
        for one, guard in conditions_of(plan, event)
    )
    lines = []
    if windows := lookers_in_windows(plan, event):
        lines += [f"if tracker.is_open({literal(windows)}):", f"{INDENT}return False"]
    lines += [*_rests(plan, event), "now = tracker.instant(source, call.context)"]
    for condition in conditions:
        lines += [f"if {condition} is not False:", f"{INDENT}return False"]
    if not all(map(counted_at_hook, windows_on(plan, event))):
        lines.append("tracker.in_forward(call, now)")
    shared = _shared_choices(windows_on(plan, event))
    lines += [f"{name} = {code}" for code, name in shared.items()]
    for number in windows_of(plan, event):
        lines.append(f"w = tracker.passed(call, now, P{number})")
        for one in windows_on(plan, event):
            if _pattern(plan, one) != f"P{number}":
                continue
            lines.append(f"# {comment_of(one.rule)}")
            if code := choices(one):
                lines.append(f"tracker.idle_passed(w, {one.number}, {shared.get(code, code)})")
            else:
                lines.append(f"tracker.run_passed(w, {one.number}, {names[one.number]})")
    lines.append("return True")
    doc = comment(f"Pass over a call of {event}, if no rule reads anything of it: true if so.")
    return HookFunction(f"pass_{suffix}", "tracker, call, source", doc, tuple(lines))


def _shared_choices(rules: list[RulePlan]) -> dict[str, str]:
    """Python for choices that several rules have, with the variable that holds them."""
    counts = Counter(choices(one) for one in rules)
    several = [code for code, count in counts.items() if "now." in code and count > 1]
    return {code: f"c{place}" for place, code in enumerate(several)}


def _rests(plan: Plan, event: str) -> Iterator[str]:
    """Conditions on the place alone, evaluated once between two boundaries."""
    conditions = dict.fromkeys(
        Scalars(plan, one, window="").code(guard, "now")
        for one, guard in conditions_on_place(plan, event)
    )
    if not conditions:
        return
    yield "rests = tracker.rests(call)"
    yield "if rests is None:"
    yield f"{INDENT}now = tracker.instant(source, call.context)"
    for place, each in enumerate(conditions):
        yield f"{INDENT}rests = {'rests and ' if place else ''}{each} is False"
    yield f"{INDENT}tracker.keep_rest(call, rests)"
    yield "if rests:"
    for number in windows_of(plan, event):
        found = [one for one in windows_on(plan, event) if _pattern(plan, one) == f"P{number}"]
        rules = " ".join(f"({one.number}, {choices(one)})," for one in found)
        yield f"{INDENT}tracker.idle_all(call, source, P{number}, ({rules}))"
    yield f"{INDENT}return True"


def _looked_at(plan: Plan, one: RulePlan, method: str, now: str) -> Iterator[str]:
    """Code that decides whether a rule is looked at here, and declares the values that it will
    read.
    """
    number, pattern = one.number, _pattern(plan, one)
    kind = one.rule.window.kind
    opened = method == "close_window" and needs_begin(one)
    ungrouped = "" if opened else _ungrouped(one)
    idle = "" if kind == "during" else _is_idle(plan, one)
    yield f"# {comment_of(one.rule)}"
    yield f"w{number} = None"
    yield f"if {f'tracker.opened(e, {number})' if opened else f'tracker.is_due(e, {number}, {pattern})'}:"
    indent = INDENT
    if counted_at_hook(one):
        reason = f", {literal(no_group(group_names(one.rule)))}" if ungrouped else ""
        yield f"{INDENT}if {ungrouped or idle}:"
        yield f"{INDENT * 2}tracker.idle(e, {number}, {pattern}, {choices(one)}{reason})"
        yield f"{INDENT}else:"
        indent = INDENT * 2
        ungrouped, idle = "", idle if ungrouped else ""
    yield f"{indent}w{number} = tracker.{method}(e, {number}, {pattern})"
    flags = [name for name, code in (("ungrouped", ungrouped), ("idle", idle)) if code]
    said = zip(flags, filter(None, (ungrouped, idle)), strict=True)
    yield from _flagged(f"w{number}", dict(said), indent)
    if opened:
        flags = _flags(one)
    yield from _want(one, now, wants_name(one, "now"), indent, f"w{number}", flags)


def _opening(plan: Plan, one: RulePlan) -> Iterator[str]:
    """A window opens: read now the values that `old` and the condition of a `during` will need."""
    number, pattern = one.number, _pattern(plan, one)
    during = one.rule.window.kind == "during"
    yield f"# {comment_of(one.rule)}"
    yield f"if tracker.is_due(e, {number}, {pattern}):"
    idle = _is_idle(plan, one) if during else ""
    reads = list(_reads_start(one, "e.now"))
    said = [(name, code) for name, code in (("ungrouped", _ungrouped(one)), ("idle", idle)) if code]
    window = f"o{number} = " if said else ""
    yield f"{INDENT}{window}tracker.open_window(e, {number}, {pattern})"
    yield from _flagged(f"o{number}", dict(said), INDENT)
    yield from _unless(f"o{number}", [name for name, _ in said], reads, INDENT)


def _flagged(window: str, flags: Mapping[str, str], indent: str) -> Iterator[str]:
    """Lines that set the flags of a window. If it has no group, its condition is not read."""
    for name, code in flags.items():
        unless = f"not {window}.ungrouped and " if name == "idle" and "ungrouped" in flags else ""
        yield f"{indent}{window}.{name} = {unless}{code}"


def _reads_start(one: RulePlan, now: str) -> Iterator[str]:
    """The reads at the opening of a window."""
    columns, kept = wants_name(one, "was"), _kept(one)
    if columns:
        yield f"e.now.want({columns})"
    if kept:
        yield f"{now}.keep({kept})"


def _flags(one: RulePlan) -> list[str]:
    """The attributes of a rule's window that make it idle."""
    across = ["ungrouped"] if one.rule.across else []
    return [*across, "idle"] if one.guard is not None else across


def _unless(window: str, flags: list[str], lines: list[str], indent: str) -> Iterator[str]:
    """Lines that are left out in an idle window."""
    if not lines:
        return
    if flags:
        said = " or ".join(f"{window}.{name}" for name in flags)
        yield f"{indent}if not ({said}):" if len(flags) > 1 else f"{indent}if not {said}:"
        indent += INDENT
    yield from (indent + line for line in lines)


def _ungrouped(one: RulePlan) -> str:
    """Python code that is true if this rank has no group for a rule; empty if the rule needs none."""
    return f"not tracker.has_group(e, {one.number}, {_axes(one)})" if one.rule.across else ""


def _is_idle(plan: Plan, one: RulePlan) -> str:
    """Python code that is true if a rule's condition is false whatever the state is; empty if that
    is unknown.
    """
    if one.guard is None:
        return ""
    idle = f"{_guard(plan, one)} is False"
    return f"tracker.rules[{one.number}].begun and {idle}" if one.history else idle


def _axes(one: RulePlan) -> str:
    """The axes of a rule that looks across axes only; none where a field names the group."""
    names = tuple(axis.name for axis in one.rule.across if isinstance(axis, r.Axis))
    return literal(names if len(names) == len(one.rule.across) else ())


def _due(plan: Plan, one: RulePlan, window: str, now: str) -> Iterator[str]:
    """Code that decides whether a span of a rule closes here, and declares the values that it will
    read.
    """
    number = one.number
    yield f"# {comment_of(one.rule)}"
    yield f"w{number} = {window}"
    ungrouped = "" if one.reads.reads_start else _ungrouped(one)
    flags = {"ungrouped": ungrouped, "idle": _is_idle(plan, one)}
    lines = [*_flagged(f"w{number}", {name: code for name, code in flags.items() if code}, "")]
    columns = wants_name(one, "now")
    lines += _want(one, now, columns, "", f"w{number}", _flags(one))
    if lines:
        yield f"if w{number} is not None:"
        yield from (INDENT + line for line in lines)


def _want(
    one: RulePlan, now: str, columns: str, indent: str, window: str, flags: list[str]
) -> Iterator[str]:
    """Request the values that a rule will read, if it has a subject and the window is not idle."""
    if not columns:
        return
    any_ = are_any(one)
    lines = [f"{now}.want({columns})"]
    if any_:
        lines = [f"if {now}.{any_}:", INDENT + lines[0]]
    yield from _unless(window, flags, lines, indent)


def _guard(plan: Plan, one: RulePlan) -> str:
    """Python for the part of a condition that reads context and the call alone. It does not wait for
    context that a device still has.
    """
    assert one.guard is not None
    own = {c.variable: "e.call" for c in one.rule.subjects if is_windows_call(c, one.rule)}
    return Scalars(plan, one, own, window="e", waiting=False).code(one.guard, "e.now")


def _shared(plan: Plan, rules: list[RulePlan], lines: list[str]) -> Iterator[str]:
    """The lines of a hook. A guard of several rules is evaluated once, before them."""
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


def _hold(opening: list[RulePlan], plan: Plan, event: str) -> Iterator[str]:
    """Read now the values that are asked for later."""
    if opening or any(event in one.watched for one in plan.rules):
        yield "e.now.hold()"


def _readings(plan: Plan, event: str) -> Iterator[str]:
    for one in plan.rules:
        if event in one.watched:
            yield f"# {comment_of(one.rule)}"
            yield f"tracker.read(e, {one.number}, {wants_name(one, 'within')})"


def _run(one: RulePlan, names: dict[int, str]) -> Iterator[str]:
    yield f"if w{one.number} is not None:"
    yield f"{INDENT}tracker.run({names[one.number]}, {one.number}, w{one.number})"


# --- spans --------------------------------------------------------------------------------------


def _spans(plan: Plan, span: str) -> list[RulePlan]:
    return [
        one for one in plan.rules if one.rule.window.kind == "each" and one.rule.window.span == span
    ]


def _span(plan: Plan, names: dict[int, str], span: str) -> HookFunction:
    rules = _spans(plan, span)
    lines: list[str] = []
    for one in rules:
        lines += _due(plan, one, f"tracker.close_span(e, {one.number})", "e.now")
    for one in rules:
        ungrouped = _ungrouped(one) if one.reads.reads_start else ""
        flag = [f"o{one.number}.ungrouped = {ungrouped}"] if ungrouped else []
        reads = [
            *flag,
            *_unless(
                f"o{one.number}",
                ["ungrouped"] if ungrouped else [],
                list(_reads_start(one, "e.next")),
                "",
            ),
        ]
        window = f"o{one.number} = " if reads else ""
        lines.append(f"{window}tracker.open_span(e, {one.number})")
        if reads:
            lines.append(f"if o{one.number} is not None:")
            lines += [INDENT + line for line in reads]
    for one in rules:
        lines += _run(one, names)
    lines += ["if e.next is None:", f"{INDENT}return"]
    lines.append("e.next.hold()")
    lines = list(_shared(plan, rules, lines))
    doc = "The run begins or ends."
    if span != "run":
        doc = f"{with_article(span).capitalize()} ends, and the next one begins."
    return HookFunction(f"at_{span}", "tracker, e", doc, tuple(lines))


def _kept(one: RulePlan) -> str:
    """Kinds and context that `old` will read, as arguments; empty if there are none."""
    kinds, ambients = _context(one, "was")
    return f"{literal(kinds)}, {literal(ambients)}" if kinds or ambients else ""


def _context(one: RulePlan, frame: Frame) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The kinds of subjects and the context values that a rule reads at one of its instants, besides columns."""
    kinds = {kind for when, kind in one.reads.kinds if when == frame}
    ambients = {name for when, name in one.reads.ambients if when == frame}
    return tuple(sorted(kinds)), tuple(sorted(ambients))


def _postponed(one: RulePlan) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """What is sampled of a rule that is postponed, besides columns."""
    fields = tuple(sorted({each.name for each in one.reads.call_fields}))
    return *_context(one, "now"), fields


def declared(plan: Plan, one: RulePlan, text: str) -> str:
    """The record of a rule in generated code, as a call."""
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
        "claim": failure(rule),
        "every": every,
        "span": window.span,
        "once": window.once,
        "across": bool(rule.across),
        "connected": len(rule.across) > 1 and _axes(one) != "()",
        "early": isinstance(rule.expect, (r.Contains, r.Ordered)),
        "when": rule.when is not None,
        "history": one.history,
        "over": settled_over(plan, one),
        "counts": tuple(sorted({event for one in counted(rule) for event in one.events})),
        "passing": tuple(sorted({kind for _, kind in one.reads.kinds if kind in PASSING})),
        "postponed": _postponed(one) if one.postponable else None,
    }
    said = {
        name: value for name, value in tail.items() if value or (name == "over" and value == ())
    }
    rest = ", ".join(f"{name}={literal(value)}" for name, value in said.items())
    return f"RuleRecord({head}, responses=({responses}){', ' if rest else ''}{rest})"


def _response(response: r.Response) -> str:
    said = {name: value for name, value in asdict(response.record).items() if value is not None}
    return f"ActionRecord({', '.join(f'{name}={literal(value)}' for name, value in said.items())})"
