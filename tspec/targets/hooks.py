"""The functions of the hook points: the rules that open, close and are evaluated there, in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import get_args

from tspec.diagnostics import with_article
from tspec.plan.calls import needs_begin
from tspec.plan.model import Plan, RulePlan
from tspec.reasons import no_group
from tspec.resolve.program import rules as r
from tspec.resolve.program.queries import group_names
from tspec.targets.bodies import INDENT, comment_of
from tspec.targets.flags import (
    Guards,
    flag_tests,
    flags_of,
    guards_of,
    set_flags,
    unless_flagged,
)
from tspec.targets.idle import (
    Flag,
    any_subject_code,
    choices_code,
    flag_tested_at_hook,
    may_pass,
    unread_conditions,
)
from tspec.targets.literals import comment, identifier, literal
from tspec.targets.passed_over import pass_lines
from tspec.targets.scalars import Scalars
from tspec.targets.wants import wants_name
from tspec.targets.windows import window_pattern, window_patterns, windows_on


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
        (span, _span(plan, names, span))
        for span in get_args(r.SpanName)
        if _spans(plan, span) or span == "step"
    )
    passes = tuple(
        (event, _pass(plan, names, event, unique[event]))
        for event in events
        if may_pass(plan, event)
    )
    return HookFunctions(begins, ends, spans, passes)


# --- calls --------------------------------------------------------------------------------------


def _begin(plan: Plan, names: dict[int, str], event: str, suffix: str) -> HookFunction:
    before = _of_event(plan, event, "before")
    opening = [one for one in _of_event(plan, event, "during", "calls") if needs_begin(one)]
    guards = guards_of(plan, [*before, *opening])
    lines = ["e = tracker.begin_call(call, source)", *_unread(plan, event), *guards.statements()]
    lines += [f"tracker.count(e, P{number})" for number in window_patterns(plan, event)]
    for one in before:
        lines += _looked_at(plan, one, "before", guards)
    for one in opening:
        lines += _opening(plan, one, guards)
    lines += _readings(plan, event)
    lines += _hold(opening, plan, event)
    for one in before:
        lines += _run(one, names)
    return HookFunction(
        f"begin_{suffix}", "tracker, call, source", comment(f"{event} begins."), tuple(lines)
    )


def _of_event(plan: Plan, event: str, *kinds: str) -> list[RulePlan]:
    return [one for one in windows_on(plan, event) if one.rule.window.kind in kinds]


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
    guards = guards_of(plan, closing)
    lines = ["e = tracker.end_call(call, source)", "if e is None:", f"{INDENT}return"]
    lines += guards.statements()
    for one in closing:
        lines += _looked_at(plan, one, "close_window", guards)
    lines += _readings(plan, event)
    lines += _hold([], plan, event)
    for one in closing:
        lines += _run(one, names)
    lines.append("tracker.leave(e)")
    return HookFunction(
        f"end_{suffix}", "tracker, call, source", comment(f"{event} returns."), tuple(lines)
    )


def _pass(plan: Plan, names: dict[int, str], event: str, suffix: str) -> HookFunction:
    doc = comment(f"Pass over a call of {event}, if no rule reads anything of it: true if so.")
    lines = tuple(pass_lines(plan, names, event))
    return HookFunction(f"pass_{suffix}", "tracker, call, source", doc, lines)


def _looked_at(plan: Plan, one: RulePlan, method: str, guards: Guards) -> Iterator[str]:
    """Code that decides whether a rule is looked at here, and declares the values that it will
    read.
    """
    number, pattern = one.number, f"P{window_pattern(plan, one)}"
    during = one.rule.window.kind == "during"
    opened = method == "close_window" and needs_begin(one)
    # A window that opened before has its group; the condition of a `during` was read as it opened.
    new = {Flag.UNGROUPED: not opened, Flag.IDLE: not during}
    tests = flag_tests(one, guards, [flag for flag, is_new in new.items() if is_new])
    yield f"# {comment_of(one.rule)}"
    yield f"w{number} = None"
    yield f"if {f'tracker.opened(e, {number})' if opened else f'tracker.is_due(e, {number}, {pattern})'}:"
    indent = INDENT
    if (tested := flag_tested_at_hook(one)) is not None:
        why = f", {literal(no_group(group_names(one.rule)))}" if tested is Flag.UNGROUPED else ""
        yield f"{INDENT}if {tests.pop(tested)}:"
        yield f"{INDENT * 2}tracker.idle(e, {number}, {pattern}, {choices_code(one)}{why})"
        yield f"{INDENT}else:"
        indent = INDENT * 2
    yield f"{indent}w{number} = tracker.{method}(e, {number}, {pattern})"
    yield from set_flags(f"w{number}", tests, indent)
    flags = flags_of(one) if opened else list(tests)
    yield from unless_flagged(f"w{number}", flags, _want(one), indent)


def _opening(plan: Plan, one: RulePlan, guards: Guards) -> Iterator[str]:
    """A window opens: read now the values that `old` and the condition of a `during` will need."""
    number, pattern = one.number, f"P{window_pattern(plan, one)}"
    during = one.rule.window.kind == "during"
    yield f"# {comment_of(one.rule)}"
    yield f"if tracker.is_due(e, {number}, {pattern}):"
    tests = flag_tests(one, guards, tuple(Flag) if during else (Flag.UNGROUPED,))
    window = f"o{number} = " if tests else ""
    yield f"{INDENT}{window}tracker.open_window(e, {number}, {pattern})"
    yield from set_flags(f"o{number}", tests, INDENT)
    yield from unless_flagged(f"o{number}", tests, _reads_start(one, "e.now"), INDENT)


def _reads_start(one: RulePlan, now: str) -> Iterator[str]:
    """The reads at the opening of a window."""
    columns = wants_name(one, "was")
    kinds, ambients = one.reads.context("was")
    if columns:
        yield f"e.now.want({columns})"
    if kinds or ambients:
        yield f"{now}.keep({literal(kinds)}, {literal(ambients)})"


def _want(one: RulePlan) -> Iterator[str]:
    """Request the values that a rule will read, if it has a subject."""
    columns = wants_name(one, "now")
    if not columns:
        return
    if any_subject := any_subject_code(one):
        yield f"if e.now.{any_subject}:"
        yield f"{INDENT}e.now.want({columns})"
    else:
        yield f"e.now.want({columns})"


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
    guards = guards_of(plan, rules)
    lines = list(guards.statements())
    for one in rules:
        lines += _closing(one, guards)
    for one in rules:
        lines += _next(one, guards)
    for one in rules:
        lines += _run(one, names)
    lines += ["if e.next is None:", f"{INDENT}return"]
    lines.append("e.next.hold()")
    doc = "The run begins or ends."
    if span != "run":
        doc = f"{with_article(span).capitalize()} ends, and the next one begins."
    return HookFunction(f"at_{span}", "tracker, e", doc, tuple(lines))


def _closing(one: RulePlan, guards: Guards) -> Iterator[str]:
    """Code that decides whether a span of a rule closes here, and declares the values that it will
    read.
    """
    window = f"w{one.number}"
    yield f"# {comment_of(one.rule)}"
    yield f"{window} = tracker.close_span(e, {one.number})"
    # The group of a span that reads values at its start was looked for as it opened.
    new = (Flag.IDLE,) if one.reads.reads_start else tuple(Flag)
    lines = [
        *set_flags(window, flag_tests(one, guards, new), ""),
        *unless_flagged(window, flags_of(one), _want(one), ""),
    ]
    if lines:
        yield f"if {window} is not None:"
        yield from (INDENT + line for line in lines)


def _next(one: RulePlan, guards: Guards) -> Iterator[str]:
    """Code that opens the next span of a rule, and reads the values that `old` will need."""
    window = f"o{one.number}"
    tests = flag_tests(one, guards, (Flag.UNGROUPED,)) if one.reads.reads_start else {}
    reads = [
        *set_flags(window, tests, ""),
        *unless_flagged(window, tests, _reads_start(one, "e.next"), ""),
    ]
    opened = f"{window} = " if reads else ""
    yield f"{opened}tracker.open_span(e, {one.number})"
    if reads:
        yield f"if {window} is not None:"
        yield from (INDENT + line for line in reads)
