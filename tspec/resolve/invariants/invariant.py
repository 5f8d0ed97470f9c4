"""From an invariant as it is written to a typed rule."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from tspec.diagnostics import did_you_mean
from tspec.resolve.expressions.arguments import duration
from tspec.resolve.expressions.events import pattern
from tspec.resolve.expressions.lower import lower
from tspec.resolve.expressions.operators import condition, named
from tspec.resolve.expressions.paths import path_of
from tspec.resolve.expressions.place import Place, Refused
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
    """The rule, or None where something is wrong with it, all of which is reported."""
    place = Place(scope, findings, lower, "for", {})
    whole = True
    try:
        window = _window_of(node, place)
    except Refused:
        # What else is wrong is judged as if the window were one in which all may stand.
        window, whole = None, False
    place = replace(place, window=window, across=node.across is not None)
    subjects, place, fine = _subjects(node, place)
    whole = whole and fine
    if window is None and whole:
        try:
            place = replace(place, window=_window_of_calls(node, subjects, place))
        except Refused:
            whole = False
    elif window is not None and window.event is not None and whole:
        # The event's filters may read the variables, which are known only now.
        try:
            place = replace(place, window=_with_filters(node, window, place))
        except Refused:
            whole = False
    rule = _clauses(node, subjects, place)
    return rule if whole else None


def _clauses(
    node: nodes.Invariant, subjects: tuple[rules.For, ...], place: Place
) -> rules.Rule | None:
    """Everything but the subjects and the window."""
    across: tuple[rules.Axis | rules.GroupField, ...] = ()
    when = None
    claim = None
    failed = False
    try:
        across = _across(node, replace(place, clause="across"))
    except Refused:
        failed = True
    try:
        if node.when is not None:
            inside = replace(place, clause="when")
            when = condition(node.when.condition, inside)
            check_uniform(when, inside)
            place = place.knowing(facts(when, True))
    except Refused:
        failed = True
        # Its guards are not known: what they might have guarded is not held against `expect`.
        place = place.trusting()
    try:
        if node.expect is not None:
            claim = lower_claim(node.expect.claim, replace(place, clause="expect"))
    except Refused:
        failed = True
    responses = lower_responses(node, place)
    if responses is None or claim is None or place.window is None or failed:
        return None
    scope = place.scope
    return rules.Rule(
        name=node.name.text,
        module=scope.unit.name,
        source=scope.source,
        span=node.name.span,
        doc=node.doc or "",
        draft=node.draft,
        subjects=subjects,
        across=across,
        window=place.window,
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


def _subjects(node: nodes.Invariant, place: Place) -> tuple[tuple[rules.For, ...], Place, bool]:
    """The `for` clauses, the place in which their variables are known, and whether all are right."""
    found = []
    fine = True
    for clause in node.subjects:
        name = clause.variable.text
        if name in place.variables:
            place.report("TS0104", f"the variable `{name}` is named twice", clause.variable)
            fine = False
        of: Type = types.SCALAR
        try:
            collection, of = _collection(clause, place)
            found.append(rules.For(name, collection))
        except Refused:
            fine = False
            # Nothing is known of its type, and nothing more is said about it.
            place = place.trusting(name)
        place = replace(place, variables={**place.variables, name: of})
    return tuple(found), place, fine


def _collection(clause: nodes.For, place: Place) -> tuple[rules.Expr, Type]:
    collection = place.lower(clause.collection)
    of = place.there(collection)
    item = item_of(of)
    if item is None:
        text = place.scope.source.slice(clause.collection.span)
        hint = did_you_mean(text, place.scope.collections)
        message = f"`for` takes a collection, and this is {named(of)}"
        place.refuse("TS0136", message, clause.collection, hint)
    return collection, item


# --- windows ------------------------------------------------------------------------------------


def _window_of(node: nodes.Invariant, place: Place) -> rules.Window | None:
    """The window that is written, its event without filters for now; None where none is."""
    place = replace(place, clause="window")
    match node.window:
        case nodes.Instant(edge=edge, event=event, thinning=thinning):
            found = rules.Window(edge, _bare(event, place))
        case nodes.During(event=event, thinning=thinning):
            found = rules.Window("during", _bare(event, place))
        case nodes.Each(unit=unit, thinning=thinning):
            found = rules.Window("each", span=_span(unit, place))
        case _:
            return None
    return _thinned(found, thinning, place)


def _bare(event: nodes.Expr, place: Place) -> rules.EventPattern:
    function = event.function if isinstance(event, nodes.Call) else event
    return pattern(function, place)


def _with_filters(node: nodes.Invariant, window: rules.Window, place: Place) -> rules.Window:
    event = getattr(node.window, "event", None)
    assert isinstance(event, nodes.Expr)
    # The filters are read at the call itself: its own fields are not at hand in them.
    return replace(window, event=pattern(event, replace(place, clause="window")))


def _span(unit: nodes.Word, place: Place) -> rules.SpanName:
    names = get_args(rules.SpanName)
    for each in names:
        if each == unit.text:
            found: rules.SpanName = each
            return found
    place.refuse("TS0120", f"there is no span `{unit.text}`", unit, did_you_mean(unit.text, names))


def _thinned(window: rules.Window, thinning: nodes.Thinning | None, place: Place) -> rules.Window:
    if thinning is None:
        return window
    if isinstance(thinning, nodes.Once):
        if window.span == "run":
            place.refuse("TS0156", "a run is there once anyway", thinning, "leave out `once`")
        return replace(window, once=True)
    every = duration(thinning.period, place, "every")
    if window.span == "run":
        place.refuse("TS0156", "a run has nothing to be thinned", thinning)
    if window.span is not None and window.span != every.unit:
        message = (
            f"`each {window.span}` is thinned by {_plural(window.span)}, not {_plural(every.unit)}"
        )
        hint = f"write `each {every.unit} every {place.scope.source.slice(thinning.period.span)}`"
        place.refuse("TS0156", message, thinning, hint)
    return replace(window, every=every)


def _plural(unit: str) -> str:
    return f"{unit}es" if unit.endswith("batch") else f"{unit}s"


def _window_of_calls(
    node: nodes.Invariant, subjects: tuple[rules.For, ...], place: Place
) -> rules.Window:
    """Without a window, the one `for c in calls(E)` is it."""
    many = [each for each in subjects if isinstance(each.collection, rules.Calls)]
    if len(many) == 1:
        collection = many[0].collection
        assert isinstance(collection, rules.Calls)
        return rules.Window("calls", collection.event)
    hint = "write `each step`, `during ...`, `before ...` or `after ...`"
    if many:
        clause = next(each for each in node.subjects if each.variable.text == many[1].variable)
        message = "each of two `calls` could be the window"
        place.refuse("TS0153", message, clause, hint)
    message = f"nothing says when `{node.name.text}` is looked at"
    place.refuse("TS0153", message, node.name, hint)


# --- groups -------------------------------------------------------------------------------------


def _across(node: nodes.Invariant, place: Place) -> tuple[rules.Axis | rules.GroupField, ...]:
    if node.across is None:
        return ()
    found = []
    failed = False
    for group in node.across.groups:
        try:
            found.append(_group(group, place))
        except Refused:
            failed = True
            continue
        if found[-1] in found[:-1]:
            place.report("TS0104", "this group is named twice", group)
            failed = True
    if failed:
        raise Refused
    return tuple(found)


def _group(node: nodes.Expr, place: Place) -> rules.Axis | rules.GroupField:
    path = path_of(node)
    axes = place.scope.axes
    if path is not None and path.words[0] not in place.variables:
        text = path.text()
        if text in axes:
            return rules.Axis(text)
        hint = place.scope.hint(text, list(axes))
        hint = hint or f"there are {', '.join(f'`{axis}`' for axis in list(axes)[:8])}"
        place.refuse("TS0125", f"there is no group `{text}`", node, hint)
    value = place.lower(node)
    # A group that a subject does not have makes no instance: it need not be guarded.
    of = value.type.item if isinstance(value.type, types.Optional) else value.type
    if of != types.GROUP:
        place.refuse("TS0125", f"`across` takes a group of ranks, not {named(of)}", node)
    return rules.GroupField(value)
