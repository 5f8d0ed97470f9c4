"""The calls that hooks must observe, and at which edge. Most events have many calls in a step."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from tspec.builtin.events import UPDATES
from tspec.plan.events import instance_patterns
from tspec.plan.model import PatternPlan, RulePlan, UnopenedPlan
from tspec.plan.reads import reads_of_groups
from tspec.resolve.program import rules as r

Fields = Mapping[str, tuple[tuple[str, ...], bool]]


def outermost(
    rules: tuple[RulePlan, ...], patterns: tuple[PatternPlan, ...], events: Iterable[str]
) -> tuple[str, ...]:
    """Events whose calls count only where no call of the same event encloses them."""
    apart = _told_apart(rules, patterns)
    return tuple(event for event in events if event not in apart)


def inside(rules: Sequence[RulePlan], kept: Mapping[str, Fields]) -> dict[str, Fields]:
    """Event -> the fields kept of a call within another call of the event, if they are fewer.

    A rule without filters counts outermost calls only. It reads nothing of a model's many layers.
    """
    needed = {
        event: _read_by([one for one in rules if not _reads_outermost(one, event)], event)
        for event in kept
    }
    return {event: fields for event, fields in needed.items() if fields != kept[event]}


def alone(rules: Sequence[RulePlan], kept: Mapping[str, Fields]) -> dict[str, Fields]:
    """Event -> the fields kept of its calls in a job of one rank, if they are fewer.

    Rules across ranks are idle there and read no tensors. A rule with filters is an exception: its
    filters select windows or subjects.
    """
    idle = {
        one.number
        for one in rules
        if one.rule.across and not any(each.filters for each in instance_patterns(one.rule))
    }
    needed = {event: _read_by(rules, event, idle) for event in kept}
    return {event: fields for event, fields in needed.items() if fields != kept[event]}


def unopened(
    rules: tuple[RulePlan, ...], kept: Mapping[str, Fields], outer: Collection[str]
) -> dict[str, UnopenedPlan]:
    """Event -> the fields kept of its calls while some rules have no window open, if they are fewer.

    These rules look up the calls that begin within another call, such as an update, and no others. Idle windows
    still count instances for each group of ranks, so the fields that name groups are kept.
    """
    found = {}
    for event in kept:
        within = tuple(one.number for one in rules if looks_within_window(one, event))
        if not within:
            continue
        waiting = [
            replace(one, reads=reads_of_groups(one.rule)) if one.number in within else one
            for one in rules
        ]
        fewer = _tables(waiting, event, outer)
        if fewer != _tables(rules, event, outer):
            found[event] = UnopenedPlan(within, *fewer)
    return found


def _tables(
    rules: Sequence[RulePlan], event: str, outer: Collection[str]
) -> tuple[Fields, Fields | None, Fields | None]:
    """The fields kept of an event's calls, and if they are fewer: of calls within others of the event, and of one rank."""
    kept = {event: _read_by(rules, event)}
    nested = {} if event in outer else inside(rules, kept)
    return kept[event], nested.get(event), alone(rules, kept).get(event)


def looks_within_window(one: RulePlan, event: str) -> bool:
    """A rule looks up calls of an event within calls of another event that it also reads at their begin."""
    window, looked = one.rule.window, one.looked_up
    return (
        window.kind == "during"
        and window.event is not None
        and event not in window.event.events
        and event not in one.watched
        and needs_begin(one)
        and any(event in node.event.events for node in looked)
        and not any(isinstance(node, r.LastCall) for node in looked)
    )


def _read_by(
    readers: Iterable[RulePlan], event: str, idle: Collection[int] = ()
) -> dict[str, tuple[tuple[str, ...], bool]]:
    """The fields that some rules read of an event's calls, without tensors for idle rules."""
    features: dict[str, set[str]] = {}
    looked_up: set[str] = set()
    for one in readers:
        for read in one.reads.call_fields:
            if read.event == event:
                features.setdefault(read.name, set()).update(
                    () if one.number in idle else read.features
                )
                looked_up.update([read.name] if read.looked_up else [])
    return {name: (tuple(sorted(features[name])), name in looked_up) for name in sorted(features)}


def _reads_outermost(one: RulePlan, event: str) -> bool:
    """A rule reads calls of an event only where no other call of the event encloses them."""
    window, looked = one.rule.window.event, one.looked_up
    if any(isinstance(node, r.LastCall) and event in node.event.events for node in looked):
        return False
    patterns = [each for each in one.event_patterns if event in each.events]
    if any(each.filters for each in patterns):
        return False
    if window is None or UPDATES.issuperset(window.events):
        return True  # no window begins within a forward pass or another call of the event
    return event in window.events and len(patterns) == 1


def deferred(
    rules: tuple[RulePlan, ...],
    events: Mapping[str, Fields],
    logged: tuple[str, ...],
    vocabulary: r.Vocabulary,
) -> tuple[str, ...]:
    """The events whose calls are read when they return only."""
    return tuple(
        event
        for event, fields in events.items()
        if event not in logged
        and event not in UPDATES
        and all(_ends_only(plan, event) for plan in rules)
        and all(_is_same_at_return(event, name, fields[name][0], vocabulary) for name in fields)
    )


def _told_apart(rules: tuple[RulePlan, ...], patterns: tuple[PatternPlan, ...]) -> set[str]:
    """Events with inner calls that may count although the outer call does not. Filters distinguish
    calls of one event, and the last call that returned may be an inner one.
    """
    found = {event for one in patterns if one.fields for event in one.events}
    for plan in rules:
        for node in plan.looked_up:
            if isinstance(node, r.LastCall):
                found.update(node.event.events)
    return found


def operators(events: Iterable[str], vocabulary: r.Vocabulary) -> tuple[str, ...]:
    """Events whose calls are torch's operators and layers: none of them changes step, epoch, micro-batch or phase."""
    declared = {event: vocabulary.event(event) for event in events}
    return tuple(name for name, event in declared.items() if event and event.is_operator)


def needs_begin(one: RulePlan) -> bool:
    """The window is a call, and something is read or known when that begins."""
    kind = one.rule.window.kind
    guarded = one.guard is not None and kind == "during"
    return kind in ("during", "calls") and (guarded or one.reads.reads_start or bool(one.watched))


def _ends_only(one: RulePlan, event: str) -> bool:
    """True if a rule reads calls of an event, if at all, after they have returned."""
    window = one.rule.window
    if event in one.watched:
        return False
    if window.event is None or event not in window.event.events:
        return True
    return one.alone and window.kind in ("during", "calls", "after") and not needs_begin(one)


def _is_same_at_return(
    event: str, name: str, features: tuple[str, ...], vocabulary: r.Vocabulary
) -> bool:
    """A field of calls has the same value when the call has returned.

    That is so of results and of plain arguments. No feature of a tensor is sure to stay within a
    call: `requires_grad_`, `resize_` and `.data = ...` change shape, dtype and device too.
    """
    declared = vocabulary.event(event)
    if declared is None:
        return False
    fields = [*declared.fields, *(one for variant in declared.variants for one in variant.fields)]
    found = [one for one in fields if one.name == name]
    if found and all(one.reads_result for one in found):
        return True
    return not features
