"""From an invariant as it is written to a typed rule."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from tspec.diagnostics import did_you_mean
from tspec.resolve.expressions.arguments import duration
from tspec.resolve.expressions.environment import Environment, Refused
from tspec.resolve.expressions.events import pattern
from tspec.resolve.expressions.lower import lower
from tspec.resolve.expressions.operators import condition, named
from tspec.resolve.expressions.paths import path_of
from tspec.resolve.expressions.presence import facts
from tspec.resolve.findings import Findings
from tspec.resolve.invariants.actions import lower_responses
from tspec.resolve.invariants.claims import check_uniform, lower_claim
from tspec.resolve.names.scope import Scope
from tspec.resolve.program import rules, types
from tspec.resolve.program.spans import ClauseSpans
from tspec.resolve.program.types import Type, item_of
from tspec.source import Span
from tspec.syntax import nodes


def lower_invariant(node: nodes.Invariant, scope: Scope, findings: Findings) -> rules.Rule | None:
    """Type an invariant. None if it has errors; all of them are reported."""
    env = Environment(scope, findings, lower, "for", {})
    whole = True
    try:
        window = _window_of(node, env)
    except Refused:
        # Other faults are judged as if the window admitted everything.
        window, whole = None, False
    env = replace(env, window=window, across=node.across is not None)
    subjects, env, fine = _subjects(node, env)
    whole = whole and fine
    if window is None and whole:
        try:
            env = replace(env, window=_window_of_calls(node, subjects, env))
        except Refused:
            whole = False
    elif window is not None and window.event is not None and whole:
        # The event's filters may read the variables, which are known only now.
        try:
            env = replace(env, window=_with_filters(node, window, env))
        except Refused:
            whole = False
    rule = _clauses(node, subjects, env)
    return rule if whole else None


def _clauses(
    node: nodes.Invariant, subjects: tuple[rules.For, ...], env: Environment
) -> rules.Rule | None:
    """Everything but the subjects and the window."""
    across: tuple[rules.Axis | rules.GroupField, ...] = ()
    when = None
    claim = None
    failed = False
    try:
        across = _across(node, replace(env, clause="across"))
    except Refused:
        failed = True
    try:
        if node.when is not None:
            inside = replace(env, clause="when")
            when = condition(node.when.condition, inside)
            check_uniform(when, inside)
            env = env.knowing(facts(when, True))
    except Refused:
        failed = True
        # The guards are unknown, so values in `expect` that they might have guarded are not
        # reported.
        env = env.trusting()
    try:
        if node.expect is not None:
            claim = lower_claim(node.expect.claim, replace(env, clause="expect"))
    except Refused:
        failed = True
    responses = lower_responses(node, env)
    if responses is None or claim is None or env.window is None or failed:
        return None
    scope = env.scope
    return rules.Rule(
        name=node.name.text,
        module=scope.unit.name,
        source=scope.source,
        span=node.name.span,
        doc=node.doc or "",
        draft=node.draft,
        subjects=subjects,
        across=across,
        window=env.window,
        when=when,
        expect=claim,
        responses=responses,
        spans=_spans(node),
    )


def _spans(node: nodes.Invariant) -> ClauseSpans:
    window, responses = node.window, node.otherwise.responses if node.otherwise else ()
    thinning = window.thinning if window else None
    return ClauseSpans(
        whole=node.span,
        subjects=tuple(each.span for each in node.subjects),
        variables=tuple(each.variable.span for each in node.subjects),
        across=_span_of(node.across),
        groups=tuple(each.span for each in node.across.groups) if node.across else (),
        window=_span_of(window),
        thinning=_span_of(thinning),
        when=_span_of(node.when),
        condition=_span_of(node.when and node.when.condition),
        expect=_span_of(node.expect),
        claim=_span_of(node.expect and node.expect.claim),
        otherwise=_span_of(node.otherwise),
        responses=tuple(each.span for each in responses),
        actions=tuple(each.action.span for each in responses),
    )


def _span_of(node: nodes.Node | None) -> Span | None:
    return None if node is None else node.span


# --- subjects -----------------------------------------------------------------------------------


def _subjects(
    node: nodes.Invariant, env: Environment
) -> tuple[tuple[rules.For, ...], Environment, bool]:
    """The `for` clauses, the environment with their variables, and whether all are without errors."""
    found = []
    fine = True
    for clause in node.subjects:
        name = clause.variable.text
        if name in env.variables:
            env.report("TS0104", f"the variable `{name}` is named twice", clause.variable)
            fine = False
        of: Type = types.SCALAR
        try:
            collection, of = _collection(clause, env)
            found.append(rules.For(name, collection))
        except Refused:
            fine = False
            # Its type is unknown, and no further faults are reported for it.
            env = env.trusting(name)
        env = replace(env, variables={**env.variables, name: of})
    return tuple(found), env, fine


def _collection(clause: nodes.For, env: Environment) -> tuple[rules.Expr, Type]:
    collection = env.lower(clause.collection)
    of = env.there(collection)
    item = item_of(of)
    if item is None:
        text = env.scope.source.slice(clause.collection.span)
        hint = did_you_mean(text, env.scope.collections)
        message = f"`for` takes a collection, and this is {named(of)}"
        env.refuse("TS0136", message, clause.collection, hint)
    return collection, item


# --- windows ------------------------------------------------------------------------------------


def _window_of(node: nodes.Invariant, env: Environment) -> rules.Window | None:
    """The window as written, with the event's filters left out for now. None if there is none."""
    env = replace(env, clause="window")
    match node.window:
        case nodes.Instant(edge=edge, event=event, thinning=thinning):
            found = rules.Window(edge, _bare(event, env))
        case nodes.During(event=event, thinning=thinning):
            found = rules.Window("during", _bare(event, env))
        case nodes.Each(unit=unit, thinning=thinning):
            found = rules.Window("each", span=_span(unit, env))
        case _:
            return None
    return _thinned(found, thinning, env)


def _bare(event: nodes.Expr, env: Environment) -> rules.EventPattern:
    function = event.function if isinstance(event, nodes.Call) else event
    return pattern(function, env)


def _with_filters(node: nodes.Invariant, window: rules.Window, env: Environment) -> rules.Window:
    event = getattr(node.window, "event", None)
    assert isinstance(event, nodes.Expr)
    # The filters are read at the call itself: its own fields are not at hand in them.
    return replace(window, event=pattern(event, replace(env, clause="window")))


def _span(unit: nodes.Word, env: Environment) -> rules.SpanName:
    names = get_args(rules.SpanName)
    for each in names:
        if each == unit.text:
            found: rules.SpanName = each
            return found
    env.refuse("TS0120", f"there is no span `{unit.text}`", unit, did_you_mean(unit.text, names))


def _thinned(
    window: rules.Window, thinning: nodes.Thinning | None, env: Environment
) -> rules.Window:
    if thinning is None:
        return window
    if isinstance(thinning, nodes.Once):
        if window.span == "run":
            env.refuse("TS0156", "a run is there once anyway", thinning, "leave out `once`")
        return replace(window, once=True)
    every = duration(thinning.period, env, "every")
    if window.span == "run":
        env.refuse("TS0156", "a run has nothing to be thinned", thinning)
    if window.span is not None and window.span != every.unit:
        message = (
            f"`each {window.span}` is thinned by {_plural(window.span)}, not {_plural(every.unit)}"
        )
        hint = f"write `each {every.unit} every {env.scope.source.slice(thinning.period.span)}`"
        env.refuse("TS0156", message, thinning, hint)
    return replace(window, every=every)


def _plural(unit: str) -> str:
    """`microbatches`, but `epochs`: `plural` of names would write `epoches`."""
    return f"{unit}es" if unit.endswith("batch") else f"{unit}s"


def _window_of_calls(
    node: nodes.Invariant, subjects: tuple[rules.For, ...], env: Environment
) -> rules.Window:
    """Without a window clause, the calls of the one `for c in calls(E)` are the windows."""
    many = [each for each in subjects if isinstance(each.collection, rules.Calls)]
    if len(many) == 1:
        collection = many[0].collection
        assert isinstance(collection, rules.Calls)
        return rules.Window("calls", collection.event)
    hint = "write `each step`, `during ...`, `before ...` or `after ...`"
    if many:
        clause = next(each for each in node.subjects if each.variable.text == many[1].variable)
        message = "each of two `calls` could be the window"
        env.refuse("TS0153", message, clause, hint)
    message = f"nothing says when `{node.name.text}` is looked at"
    env.refuse("TS0153", message, node.name, hint)


# --- groups -------------------------------------------------------------------------------------


def _across(node: nodes.Invariant, env: Environment) -> tuple[rules.Axis | rules.GroupField, ...]:
    if node.across is None:
        return ()
    found = []
    failed = False
    for group in node.across.groups:
        try:
            found.append(_group(group, env))
        except Refused:
            failed = True
            continue
        if found[-1] in found[:-1]:
            env.report("TS0104", "this group is named twice", group)
            failed = True
    if failed:
        raise Refused
    return tuple(found)


def _group(node: nodes.Expr, env: Environment) -> rules.Axis | rules.GroupField:
    path = path_of(node)
    axes = env.scope.axes
    if path is not None and path.words[0] not in env.variables:
        text = path.text()
        if text in axes:
            return rules.Axis(text)
        hint = env.scope.hint(text, list(axes))
        hint = hint or f"there are {', '.join(f'`{axis}`' for axis in list(axes)[:8])}"
        env.refuse("TS0125", f"there is no group `{text}`", node, hint)
    value = env.lower(node)
    # A group that a subject does not have makes no instance: it need not be guarded.
    of = value.type.item if isinstance(value.type, types.Optional) else value.type
    if of != types.GROUP:
        env.refuse("TS0125", f"`across` takes a group of ranks, not {named(of)}", node)
    return rules.GroupField(value)
