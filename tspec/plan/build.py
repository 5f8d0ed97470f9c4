"""From rules to a plan: the values each rule reads at which instants, its counters, and the history
to keep.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tspec.builtin.actions import ACTIONS
from tspec.builtin.events import FETCHES, UPDATES
from tspec.builtin.kinds import PASSING
from tspec.plan.calls import alone, deferred, inside, operators, outermost, unopened
from tspec.plan.events import (
    counted,
    expressions_of,
    fields_of,
    filters_at_return,
    is_windows_call,
    known_at_return,
    looked_up,
)
from tspec.plan.lasting import lasting
from tspec.plan.model import PatternPlan, Plan, RulePlan
from tspec.plan.postponed import is_postponable
from tspec.plan.reads import reads_of
from tspec.plan.receivers import receivers
from tspec.resolve.program import rules as r
from tspec.resolve.program import types as t
from tspec.resolve.program.queries import conjuncts, last_step, looks_back
from tspec.resolve.program.types import holds_tensors, innermost
from tspec.resolve.program.walk import expressions


def build(program: r.Program, given: Mapping[str, object]) -> Plan:
    """The plan of a program. `given` holds known values of the job, such as the sizes of groups."""
    vocabulary = program.vocabulary
    planned = [rule for rule in program.rules if not _is_empty(rule, given)]
    rules = tuple(_rule(number, rule, vocabulary) for number, rule in enumerate(planned))
    patterns = tuple(_patterns(rules, vocabulary))
    kept = _kept(rules, vocabulary)
    outer = outermost(rules, patterns, kept)
    logged = tuple(sorted(_logged(rules, vocabulary)))
    across = [plan.rule for plan in rules if plan.rule.across]
    return Plan(
        rules=rules,
        patterns=patterns,
        kept=kept,
        inside=inside(rules, {event: kept[event] for event in kept if event not in outer}),
        alone=alone(rules, kept),
        unopened=unopened(rules, kept, outer),
        logged=logged,
        passing=_passing(rules),
        firsts=_columns(rules, "first"),
        kinds=tuple(sorted({kind for rule in across for kind in _lasting_kinds(rule)})),
        outermost=outer,
        deferred=deferred(rules, kept, logged, vocabulary),
        lasting=lasting(rules),
        operators=operators(kept, vocabulary),
        receivers=receivers(rules, kept, vocabulary),
    )


def _lasting_kinds(rule: r.Rule) -> Iterator[str]:
    """The kinds of the rule's subjects that outlast a step."""
    for one in rule.subjects:
        kind = innermost(one.collection.type)
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
    history = any(map(looks_back, expressions_of(rule)))
    folds = any(
        _folds_over_ranks(node) for expr in expressions_of(rule) for node in expressions(expr)
    )
    event = rule.window.event
    at_return = event is not None and filters_at_return(event, vocabulary)
    by_itself = not (rule.across or history or folds or at_return or rule.window.once)
    watched: tuple[str, ...] = ()
    if isinstance(rule.expect, r.OnlyDuring) and rule.expect.change:
        watched = tuple(sorted({event for one in rule.expect.events for event in one.events}))
    keeps = history and not _keeps_first_alone(rule)
    guard = _until(rule) if keeps else _guard(rule, vocabulary)
    reads = reads_of(rule)
    return RulePlan(
        number=number,
        rule=rule,
        looked_up=tuple(looked_up(rule)),
        counted=tuple(counted(rule)),
        reads=reads,
        alone=by_itself,
        history=history,
        guard=guard,
        watched=watched,
        postponable=is_postponable(rule, reads),
    )


def _keeps_first_alone(rule: r.Rule) -> bool:
    """True if all instances share one history that only `first` reads.

    It does not change after the first instance.
    """
    back = (
        isinstance(node, r.Previous) or (isinstance(node, r.Fold) and node.scope == "time")
        for expr in expressions_of(rule)
        for node in expressions(expr)
    )
    shared = all(is_windows_call(one, rule) for one in rule.subjects)
    return shared and not (rule.across or rule.window.once or any(back))


def _guard(rule: r.Rule, vocabulary: r.Vocabulary) -> r.Expr | None:
    """The part of a condition that reads only context, and plain fields of the window's call.

    If the condition folds over ranks, each rank contributes its value, even one on which the rest
    is false. Then only parts that are equal on all ranks in a window count.
    """
    if rule.when is None:
        return None
    plain = tuple(part for part in conjuncts(rule.when) if _is_plain(part, rule, vocabulary))
    if any(map(_folds_over_ranks, expressions(rule.when))):
        plain = tuple(part for part in plain if all(map(_is_of_window, expressions(part))))
    if not plain:
        return None
    return plain[0] if len(plain) == 1 else r.And(rule.when.type, rule.when.span, plain)


def _until(rule: r.Rule) -> r.Expr | None:
    """The part of a condition that gives the last step at which it can be true.

    For a rule that looks back, each window up to that step is read, since a later one may look back
    at it. No window after it is read.
    """
    ends = tuple(part for part in conjuncts(rule.when) if last_step(part) is not None)
    if rule.when is None or len(ends) < 2:
        return next(iter(ends), None)
    return r.And(rule.when.type, rule.when.span, ends)


def _folds_over_ranks(node: r.Expr) -> bool:
    return isinstance(node, r.Transpose) or (isinstance(node, r.Fold) and node.scope == "group")


def _is_of_window(node: r.Expr) -> bool:
    """True if the value is the same on all ranks in one window."""
    if isinstance(node, r.Ambient):
        return node.name in _OF_WINDOW
    return not isinstance(node, (r.Variable, r.Field, r.WindowCall))


_OF_WINDOW = frozenset({"step", "run.step", "epoch", "microbatch"})
"""Names that are always known and place a window; windows of ranks are aligned by them."""

_PLAIN = (
    r.Constant, r.Ambient, r.ListDisplay, r.Compare, r.Arithmetic, r.Negate, r.Not, r.And, r.Or,
    r.Implies, r.Present, r.Member, r.WindowCall, r.Index, r.Function,
)  # fmt: skip


def _is_plain(expr: r.Expr, rule: r.Rule, vocabulary: r.Vocabulary) -> bool:
    return all(_is_plain_node(node, rule, vocabulary) for node in expressions(expr))


def _is_plain_node(node: r.Expr, rule: r.Rule, vocabulary: r.Vocabulary) -> bool:
    if isinstance(node, r.Variable):
        return any(
            one.variable == node.name and is_windows_call(one, rule) for one in rule.subjects
        )
    if isinstance(node, r.Field):
        event = rule.window.event
        of_call = isinstance(node.base, r.WindowCall)
        at_return = (
            of_call
            and event is not None
            and any(known_at_return(e, node.name, vocabulary) for e in event.events)
        )
        return not holds_tensors(node.type) and not at_return
    return isinstance(node, _PLAIN)


def _patterns(rules: tuple[RulePlan, ...], vocabulary: r.Vocabulary) -> Iterator[PatternPlan]:
    keys: dict[tuple[tuple[str, ...], tuple[str, ...]], int] = {}
    for plan in rules:
        for pattern in plan.event_patterns:
            keys.setdefault((tuple(sorted(set(pattern.events))), fields_of(pattern)), len(keys))
    for (events, fields), number in keys.items():
        at_return = any(
            known_at_return(event, name, vocabulary) for event in events for name in fields
        )
        yield PatternPlan(number, events, fields, at_return)


def _logged(rules: tuple[RulePlan, ...], vocabulary: r.Vocabulary) -> set[str]:
    logged = {event for plan in rules for one in plan.counted for event in one.events}
    for plan in rules:
        pattern = plan.rule.window.event
        if pattern is not None and filters_at_return(pattern, vocabulary):
            logged.update(pattern.events)
    return logged


def _kept(
    rules: tuple[RulePlan, ...], vocabulary: r.Vocabulary
) -> dict[str, dict[str, tuple[tuple[str, ...], bool]]]:
    kept: dict[str, dict[str, set[str]]] = {}
    later: set[tuple[str, str]] = set()
    if _passing(rules):
        kept.update({name: {} for name in FETCHES if vocabulary.event(name) is not None})
    if any(
        ACTIONS[each.action].needs == "the update" for plan in rules for each in plan.rule.responses
    ):
        kept.update({name: {} for name in UPDATES if vocabulary.event(name) is not None})
    for plan in rules:
        for one in plan.reads.call_fields:
            kept.setdefault(one.event, {}).setdefault(one.name, set()).update(one.features)
            if one.looked_up:
                later.add((one.event, one.name))
        for pattern in plan.event_patterns:
            for event in pattern.events:
                kept.setdefault(event, {})
    return {
        event: {
            name: (tuple(sorted(fields[name])), (event, name) in later) for name in sorted(fields)
        }
        for event, fields in sorted(kept.items())
    }
