"""From rules to a plan: what each rule reads at which instants, what is counted, what must be kept."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tspec.plan.reads import Reads, is_first_sample, reads_of
from tspec.plan.walk import claims, holds_tensors, item, patterns, walk
from tspec.resolve import rules as r
from tspec.resolve import types as t


@dataclass(frozen=True, slots=True)
class PatternPlan:
    """Calls of some events, told apart by fields. `late`: some field is known at the end only."""

    number: int
    events: tuple[str, ...]
    fields: tuple[str, ...]
    late: bool


@dataclass(frozen=True, slots=True)
class RulePlan:
    """One rule, and how it executes."""

    number: int
    rule: r.Rule
    reads: Reads
    alone: bool
    """Each instance is decided by itself as its window ends: no group, no look-back, not `once`, no filter on results."""
    history: bool
    guard: r.Expr | None
    """Conditions on context and the window's call alone: where they are false, nothing else is read."""
    watched: tuple[str, ...]
    """Events at whose begins and ends `x only during …` reads x."""


@dataclass(frozen=True, slots=True)
class Plan:
    """All rules of a program, target-neutral."""

    rules: tuple[RulePlan, ...]
    patterns: tuple[PatternPlan, ...]
    kept: Mapping[str, Mapping[str, tuple[tuple[str, ...], bool]]]
    """Event -> field of its calls -> features of the tensors in it, and whether it is looked up later."""
    logged: tuple[str, ...]
    """Events whose calls are kept while a window that counts them is open."""

    passing: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    """Columns of subjects that last for a step: kind, field, features."""
    firsts: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
    """Columns of which the first sample is read."""
    kinds: tuple[str, ...] = ()
    """Kinds of lasting subjects over which rules across ranks go."""
    outermost: tuple[str, ...] = ()
    """Events of which a call inside of a call of the same event counts in no rule."""

    def pattern(self, events: tuple[str, ...], fields: tuple[str, ...]) -> PatternPlan:
        """The pattern of some events and fields."""
        key = (tuple(sorted(set(events))), fields)
        return next(one for one in self.patterns if (one.events, one.fields) == key)


def build(program: r.Program, given: Mapping[str, object]) -> Plan:
    """The plan of a program. `given` holds what is known of the job, such as the sizes of groups."""
    kept = [rule for rule in program.rules if not _is_empty(rule, given)]
    rules = tuple(_rule(number, rule, program.vocabulary) for number, rule in enumerate(kept))
    patterns_ = tuple(_patterns(rules, program.vocabulary))
    watched = _kept(rules, program.vocabulary)
    return Plan(
        rules,
        patterns_,
        watched,
        tuple(sorted(_logged(rules, program.vocabulary))),
        _passing(rules),
        _columns(rules, "first"),
        tuple(sorted({kind for plan in rules if plan.rule.across for kind in _lasting(plan.rule)})),
        tuple(event for event in watched if event not in _told_apart(rules, patterns_)),
    )


def _told_apart(rules: tuple[RulePlan, ...], patterns_: tuple[PatternPlan, ...]) -> set[str]:
    """Events of which an inner call may count where the outer does not.

    Filters tell calls of one event apart, and the last call that returned may be an inner one.
    """
    found = {event for one in patterns_ if one.fields for event in one.events}
    for plan in rules:
        for node in _looked_up(plan.rule):
            if isinstance(node, r.LastCall):
                found.update(node.event.events)
    return found


PASSING = ("batch", "message")
UPDATES = ("optimizer.step", "update")
"""The calls that `skip` leaves out."""


def _lasting(rule: r.Rule) -> Iterator[str]:
    for one in rule.subjects:
        kind = item(one.collection.type)
        if isinstance(kind, t.Entity) and kind.kind not in PASSING:
            yield kind.kind


def _columns(
    rules: tuple[RulePlan, ...], *frames: str
) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    found: dict[tuple[str, str], set[str]] = {}
    for plan in rules:
        for one in plan.reads.columns:
            if one.frame in frames:
                found.setdefault((one.kind, one.name), set()).update(one.features)
    return tuple((kind, name, tuple(sorted(found[kind, name]))) for kind, name in sorted(found))


def _passing(rules: tuple[RulePlan, ...]) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    kinds = {kind for plan in rules for _, kind in plan.reads.kinds if kind in PASSING}
    columns = tuple(one for one in _columns(rules, "now", "was") if one[0] in PASSING)
    return (*((kind, "", ()) for kind in sorted(kinds)), *columns)


def _is_empty(rule: r.Rule, given: Mapping[str, object]) -> bool:
    """Every axis that the rule looks across has one rank in this job, so it is idle always."""
    return bool(rule.across) and all(
        isinstance(axis, r.Axis) and given.get(axis.name) == 1 for axis in rule.across
    )


def _rule(number: int, rule: r.Rule, vocabulary: r.Vocabulary) -> RulePlan:
    history = any(looks_back(node) for expr in _expressions(rule) for node in walk(expr))
    folds = any(
        isinstance(node, r.Transpose) or (isinstance(node, r.Fold) and node.scope == "group")
        for expr in _expressions(rule)
        for node in walk(expr)
    )
    event = rule.window.event
    late = event is not None and _any_late(event, vocabulary)
    alone = not (rule.across or history or folds or late or rule.window.once)
    watched: tuple[str, ...] = ()
    if isinstance(rule.expect, r.OnlyDuring) and rule.expect.change:
        watched = tuple(sorted({event for one in rule.expect.events for event in one.events}))
    guard = None if history else _guard(rule, vocabulary)
    return RulePlan(number, rule, reads_of(rule), alone, history, guard, watched)


def looks_back(node: r.Expr) -> bool:
    """Whether a node needs earlier instances: `previous`, `over`, and `first` but for first samples."""
    if isinstance(node, r.First):
        return not is_first_sample(node.value)
    return isinstance(node, r.Previous) or (isinstance(node, r.Fold) and node.scope == "time")


def _expressions(rule: r.Rule) -> Iterator[r.Expr]:
    if rule.when is not None:
        yield rule.when
    yield from claims(rule.expect)
    for pattern in patterns(rule.expect):
        for one in pattern.filters:
            yield one.value


def _guard(rule: r.Rule, vocabulary: r.Vocabulary) -> r.Expr | None:
    """The part of a condition that reads only context, and plain fields of the window's call."""
    if rule.when is None:
        return None
    parts = rule.when.items if isinstance(rule.when, r.And) else (rule.when,)
    plain = tuple(part for part in parts if _is_plain(part, rule, vocabulary))
    if not plain:
        return None
    return plain[0] if len(plain) == 1 else r.And(rule.when.type, rule.when.span, plain)


_PLAIN = (
    r.Constant, r.Ambient, r.ListDisplay, r.Compare, r.Arithmetic, r.Negate, r.Not, r.And, r.Or,
    r.Implies, r.Present, r.Member, r.WindowCall, r.Index,
)  # fmt: skip


def _is_plain(expr: r.Expr, rule: r.Rule, vocabulary: r.Vocabulary) -> bool:
    return all(_is_plain_node(node, rule, vocabulary) for node in walk(expr))


def _is_plain_node(node: r.Expr, rule: r.Rule, vocabulary: r.Vocabulary) -> bool:
    if isinstance(node, r.Variable):
        return any(
            one.variable == node.name and is_windows_call(one, rule) for one in rule.subjects
        )
    if isinstance(node, r.Field):
        event = rule.window.event
        of_call = isinstance(node.base, r.WindowCall)
        late = (
            of_call
            and event is not None
            and any(_is_late(e, node.name, vocabulary) for e in event.events)
        )
        return not holds_tensors(node.type) and not late
    if isinstance(node, r.Function):
        return node.name == "isinstance"
    return isinstance(node, _PLAIN)


# --- patterns -----------------------------------------------------------------------------------


def event_patterns(rule: r.Rule) -> Iterator[r.EventPattern]:
    """Every event pattern that a rule names, that of its window first."""
    if rule.window.event is not None:
        yield rule.window.event
    yield from counted(rule)


def counted(rule: r.Rule) -> Iterator[r.EventPattern]:
    """The patterns of which calls are looked up within the window."""
    yield from patterns(rule.expect)
    for node in _looked_up(rule):
        yield node.event


def _looked_up(rule: r.Rule) -> Iterator[r.Calls | r.LastCall]:
    """Where calls are looked up, but for those of which each is a window."""
    expressions = [one.collection for one in rule.subjects if not is_windows_call(one, rule)]
    expressions += _expressions(rule)
    expressions += [axis.value for axis in rule.across if isinstance(axis, r.GroupField)]
    for expr in expressions:
        for node in walk(expr):
            if isinstance(node, (r.Calls, r.LastCall)):
                yield node


def is_windows_call(clause: r.For, rule: r.Rule) -> bool:
    """It is the `for c in calls(E)` of which the calls are the windows."""
    return (
        isinstance(clause.collection, r.Calls)
        and rule.window.kind == "calls"
        and clause.collection.event == rule.window.event
    )


def fields_of(pattern: r.EventPattern) -> tuple[str, ...]:
    """The fields that a pattern's filters name, in order."""
    return tuple(one.field for one in pattern.filters)


def _patterns(rules: tuple[RulePlan, ...], vocabulary: r.Vocabulary) -> Iterator[PatternPlan]:
    keys: dict[tuple[tuple[str, ...], tuple[str, ...]], int] = {}
    for plan in rules:
        for pattern in event_patterns(plan.rule):
            keys.setdefault((tuple(sorted(set(pattern.events))), fields_of(pattern)), len(keys))
    for (events, fields), number in keys.items():
        late = any(_is_late(event, name, vocabulary) for event in events for name in fields)
        yield PatternPlan(number, events, fields, late)


def _any_late(pattern: r.EventPattern, vocabulary: r.Vocabulary) -> bool:
    return any(
        _is_late(event, name, vocabulary) for event in pattern.events for name in fields_of(pattern)
    )


def _is_late(event: str, name: str, vocabulary: r.Vocabulary) -> bool:
    declared = vocabulary.event(event)
    if declared is None or name == "class":
        return True
    fields = [*declared.fields, *(one for variant in declared.variants for one in variant.fields)]
    found = [one for one in fields if one.name == name]
    return not found or any(one.reads_result for one in found)


def _logged(rules: tuple[RulePlan, ...], vocabulary: r.Vocabulary) -> set[str]:
    logged = {event for plan in rules for one in counted(plan.rule) for event in one.events}
    for plan in rules:
        pattern = plan.rule.window.event
        if pattern is not None and any(
            _is_late(event, name, vocabulary)
            for event in pattern.events
            for name in fields_of(pattern)
        ):
            logged.update(pattern.events)
    return logged


def _kept(
    rules: tuple[RulePlan, ...], vocabulary: r.Vocabulary
) -> dict[str, dict[str, tuple[tuple[str, ...], bool]]]:
    kept: dict[str, dict[str, set[str]]] = {}
    looked_up: set[tuple[str, str]] = set()
    if _passing(rules) and vocabulary.event("fetch") is not None:
        kept["fetch"] = {}
    if any(each.action == "skip" for plan in rules for each in plan.rule.responses):
        kept.update({name: {} for name in UPDATES if vocabulary.event(name) is not None})
    for plan in rules:
        for one in plan.reads.call_fields:
            kept.setdefault(one.event, {}).setdefault(one.name, set()).update(one.features)
            if one.looked_up:
                looked_up.add((one.event, one.name))
        for pattern in event_patterns(plan.rule):
            for event in pattern.events:
                kept.setdefault(event, {})
    return {
        event: {
            name: (tuple(sorted(fields[name])), (event, name) in looked_up)
            for name in sorted(fields)
        }
        for event, fields in sorted(kept.items())
    }
