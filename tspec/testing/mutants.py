"""Mutants: small changes of a rule that a test of the rule should notice.

A change is a function from a part of a rule to other parts; `CHANGES` orders them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from tspec.builtin.folds import FOLDS
from tspec.resolve.program import rules, types
from tspec.resolve.program.rules import Axis, Duration, Expr, Holds, Rule, Window
from tspec.resolve.program.text import finite_number, pattern_text, text
from tspec.resolve.program.walk import operands, rebuild
from tspec.source import Span
from tspec.why.conditions import span_of


@dataclass(frozen=True, slots=True)
class Mutant:
    """A changed rule: the kind of change, its place, and the changed part before and after."""

    original: Rule
    rule: Rule
    kind: str
    span: Span
    before: str
    after: str

    @property
    def same_instances(self) -> bool:
        """Only `when` or `expect` changed, so that subjects, groups and windows are as they were."""
        old, new = self.original, self.rule
        return (old.subjects, old.across, old.window) == (new.subjects, new.across, new.window)


def mutants(rule: Rule) -> Iterator[Mutant]:
    """All mutants of a rule, in an order that depends on the rule alone."""
    yield from _without_when(rule)
    if rule.when is not None:
        for old, new, whole, kind in _changed(rule.when):
            yield _mutant(rule, replace(rule, when=whole), kind, old, new)
    if isinstance(rule.expect, Holds):
        for old, new, whole, kind in _changed(rule.expect.condition):
            yield _mutant(rule, replace(rule, expect=Holds(whole)), kind, old, new)
    yield from _changed_claim(rule)
    yield from _changed_window(rule)
    yield from _changed_group(rule)


def _mutant(rule: Rule, changed: Rule, kind: str, old: Expr, new: Expr) -> Mutant:
    span = span_of(old, rule)
    if kind == "drop" and isinstance(old, rules.Or | rules.And):
        kept = new.items if isinstance(new, type(old)) else (new,)
        gone = next(item for item in old.items if item not in kept)
        return Mutant(rule, changed, kind, span_of(gone, rule), text(gone), _NOTHING)
    return Mutant(rule, changed, kind, span, text(old), text(new))


_NOTHING = "nothing"


# --- conditions ---------------------------------------------------------------------------------


def _without_when(rule: Rule) -> Iterator[Mutant]:
    """`when` left out, where it is one condition; of several, one after the other is dropped."""
    when = rule.when
    if when is not None and not isinstance(when, rules.And):
        changed = replace(rule, when=None)
        yield Mutant(rule, changed, "drop", span_of(when, rule), text(when), _NOTHING)


def _joined(junction: rules.And | rules.Or, without: int) -> Expr:
    rest = junction.items[:without] + junction.items[without + 1 :]
    return rest[0] if len(rest) == 1 else replace(junction, items=rest)


def _changed(expr: Expr) -> Iterator[tuple[Expr, Expr, Expr, str]]:
    """Each changed part of an expression: the part, its replacement, the new whole, and the kind."""
    for kind, change in CHANGES.items():
        for old, new, whole in _everywhere(expr, change):
            yield old, new, whole, kind


Change = Callable[[Expr], Iterator[Expr]]


def _everywhere(expr: Expr, change: Change) -> Iterator[tuple[Expr, Expr, Expr]]:
    """Each part that can be changed, its replacement, and the whole expression with it.

    For a number that the rule writes, the part is the comparison or sum that it is an operand of.
    """
    for new in change(expr):
        yield expr, new, new
    if _is_finite(expr) or (change is _negated and isinstance(expr, rules.Fold)):
        return
    for place, part in enumerate(_below(expr)):
        for old, new, inner in _everywhere(part, change):
            whole = _with(expr, place, inner)
            yield (expr, whole, whole) if isinstance(old, rules.Constant) else (old, new, whole)


def _is_finite(expr: Expr) -> bool:
    return finite_number(expr) is not None


def _below(expr: Expr) -> tuple[Expr, ...]:
    """The expressions right below that are changed: those in filters are not."""
    if isinstance(expr, rules.Restrict):
        return (expr.collection,)
    if isinstance(expr, rules.Subjects | rules.LastCall | rules.Calls):
        return ()
    return tuple(operands(expr))


def _with(expr: Expr, place: int, part: Expr) -> Expr:
    """The expression with another part in a place of `_below`."""
    places = count()
    return rebuild(expr, lambda each: part if next(places) == place else each)


def _negated(expr: Expr) -> Iterator[Expr]:
    """Negate a condition that is not made of others."""
    if _is_finite(expr):
        yield rules.Not(types.BOOL, expr.span, expr)
    elif isinstance(expr, rules.Not):
        yield expr.value
    elif expr.type == types.BOOL and isinstance(
        expr, rules.Compare | rules.Member | rules.SameObject | rules.Present | rules.Function
    ):
        yield rules.Not(types.BOOL, expr.span, expr)


_BOUNDS: Mapping[str, Any] = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
}  # fmt: skip


def _compared(expr: Expr) -> Iterator[Expr]:
    """Include or exclude a bound: `<` and `<=`, `>` and `>=`."""
    if isinstance(expr, rules.Compare) and expr.op not in ("==", "!=") and not _is_finite(expr):
        yield replace(expr, op=_BOUNDS[expr.op])


def _dropped(expr: Expr) -> Iterator[Expr]:
    """Drop one operand of an `or`, or of an `and` inside of it."""
    if isinstance(expr, rules.Or | rules.And):
        for place in range(len(expr.items)):
            yield _joined(expr, place)


def _junction(expr: Expr) -> Iterator[Expr]:
    if isinstance(expr, rules.And):
        yield rules.Or(expr.type, expr.span, expr.items)
    elif isinstance(expr, rules.Or):
        yield rules.And(expr.type, expr.span, expr.items)


def _threshold(expr: Expr) -> Iterator[Expr]:
    """Change a number that the rule writes: plus and minus one, or twice and half."""
    if not isinstance(expr, rules.Constant) or isinstance(expr.value, bool):
        return
    if isinstance(expr.value, int):
        for step in (1, -1):
            yield replace(expr, value=expr.value + step)
    elif isinstance(expr.value, float):
        for number in (expr.value * 2, expr.value / 2) if expr.value else (1.0,):
            yield replace(expr, value=number)


def _fold(expr: Expr) -> Iterator[Expr]:
    if isinstance(expr, rules.Fold) and (other := FOLDS[expr.name].mutant) is not None:
        yield replace(expr, name=other)


def _look_back(expr: Expr) -> Iterator[Expr]:
    """`old(x)`, `previous(x)`, `first(x)` as x."""
    if isinstance(expr, rules.Old | rules.Previous | rules.First):
        yield expr.value


def _horizon(expr: Expr) -> Iterator[Expr]:
    """A look back twice and half as far."""
    if isinstance(expr, rules.Fold) and expr.over is not None:
        for count in (expr.over.count * 2, expr.over.count // 2):
            if count and count != expr.over.count:
                yield replace(expr, over=replace(expr.over, count=count))


CHANGES: Mapping[str, Change] = {
    "negate": _negated,
    "bound": _compared,
    "drop": _dropped,
    "junction": _junction,
    "threshold": _threshold,
    "fold": _fold,
    "look-back": _look_back,
    "horizon": _horizon,
}
"""The changes of conditions, in the order of trial."""


# --- claims, windows, groups --------------------------------------------------------------------


def _changed_claim(rule: Rule) -> Iterator[Mutant]:
    claim, span = rule.expect, _claim_span(rule)
    if isinstance(claim, rules.Ordered):
        turned = replace(rule, expect=replace(claim, events=tuple(reversed(claim.events))))
        names = [pattern_text(event) for event in claim.events]
        word = f" {claim.edge} "
        yield Mutant(rule, turned, "order", span, word.join(names), word.join(reversed(names)))
    elif isinstance(claim, rules.OnlyDuring) and len(claim.events) > 1:
        names = [pattern_text(event) for event in claim.events]
        for place in range(len(names)):
            rest = claim.events[:place] + claim.events[place + 1 :]
            fewer = replace(rule, expect=replace(claim, events=rest))
            after = " or ".join(names[:place] + names[place + 1 :])
            yield Mutant(rule, fewer, "drop", span, " or ".join(names), after)
    elif isinstance(claim, rules.Contains):
        unfiltered = replace(claim, event=replace(claim.event, filters=()))
        if claim.event.filters:
            before, after = pattern_text(claim.event), pattern_text(unfiltered.event)
            yield Mutant(rule, replace(rule, expect=unfiltered), "filter", span, before, after)


def _claim_span(rule: Rule) -> Span:
    return rule.spans.expect or rule.span


def _changed_window(rule: Rule) -> Iterator[Mutant]:
    window = rule.window
    for before, changed in _windows(window):
        span = rule.spans.window or rule.span
        after = "without" if changed.every is None else f"every {_duration(changed.every)}"
        yield Mutant(rule, replace(rule, window=changed), "window", span, before, after)


def _windows(window: Window) -> Iterator[tuple[str, Window]]:
    if window.every is not None:
        before = f"every {_duration(window.every)}"
        yield before, replace(window, every=None)
        yield before, replace(window, every=replace(window.every, count=window.every.count * 2))
    if window.once:
        yield "once", replace(window, once=False)


def _duration(every: Duration) -> str:
    return f"{every.count} {every.unit}{'' if every.count == 1 else 's'}"


def _changed_group(rule: Rule) -> Iterator[Mutant]:
    """Another axis."""
    for place, group in enumerate(rule.across):
        span = rule.spans.across or rule.span
        if isinstance(group, Axis):
            other = Axis("tp" if group.name in ("world", "dp") else "dp")
            axes = (*rule.across[:place], other, *rule.across[place + 1 :])
            changed = replace(rule, across=axes)
            yield Mutant(
                rule, changed, "group", span, f"across {group.name}", f"across {other.name}"
            )
