"""Compares the occurrences of two rules, and gives the conditions that thinning and filters put on
one.

An occurrence is a choice of subjects, a group and a window. Thinning and filters choose among
occurrences, so they are conditions like others: `every 10 steps` is `step` divisible by 10.
Look-backs (`previous`, `over`) depend on the earlier occurrences.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tspec.builtin.kinds import PASSING
from tspec.resolve.program import rules, types
from tspec.resolve.program.rules import Expr, Filter, For, Rule, Vocabulary, Window
from tspec.resolve.program.types import CallOf, Entity, plain
from tspec.resolve.program.walk import walk
from tspec.source import NOWHERE

OF_CALLS = frozenset({"before", "after", "during"})


def same_occurrences(old: Rule, new: Rule) -> bool:
    """True if both rules are about the same occurrences, except for thinning, filters and the edge
    of a call.

    The rules have the same variables.
    """
    if old.across != new.across or len(old.subjects) != len(new.subjects):
        return False
    if any(map(_differ, old.subjects, new.subjects)):
        return False
    if not _same_windows(old.window, new.window):
        return False
    if old.window.once and new.window.once:
        return same_frame(old, new)
    if old.across:  # The ranks without a window would differ.
        windows = [replace(each.window, every=None, once=False) for each in (old, new)]
        return windows[0] == windows[1] and (
            old.subjects == new.subjects or all(map(_lasts, old.subjects))
        )
    return True


def _lasts(clause: For) -> bool:
    """Subjects that a rank can lack: all but calls, batches, messages and elements of lists."""
    of = plain(clause.collection.type)
    item = plain(of.item) if isinstance(of, types.ListOf | types.SetOf) else None
    return isinstance(item, Entity) and item.kind not in PASSING


def other_windows(old: Rule, new: Rule) -> bool:
    """True if no window of one rule is a window of the other: steps and epochs, calls of other
    events.
    """
    events = [set(each.window.event.events) if each.window.event else set() for each in (old, new)]
    if all(events):
        return not events[0] & events[1]
    return bool(events[0] or events[1]) or old.window.span != new.window.span


def same_frame(old: Rule, new: Rule) -> bool:
    """The same occurrences altogether, with the same history."""
    return (old.subjects, old.across, old.window) == (new.subjects, new.across, new.window)


def _differ(old: For, new: For) -> bool:
    return old.variable != new.variable or unfiltered(old.collection) != unfiltered(new.collection)


def _same_windows(old: Window, new: Window) -> bool:
    if old.kind != new.kind and not {old.kind, new.kind} <= OF_CALLS:
        return False
    events = [each.event.events if each.event is not None else () for each in (old, new)]
    return old.span == new.span and events[0] == events[1]


def unfiltered(collection: Expr) -> Expr:
    """A collection without its own filters."""
    if isinstance(collection, rules.Subjects):
        return replace(collection, filters=())
    if isinstance(collection, rules.Restrict):
        return unfiltered(collection.collection)
    if isinstance(collection, rules.Calls):
        return replace(collection, event=replace(collection.event, filters=()))
    return collection


def _filters(collection: Expr) -> tuple[Filter, ...]:
    if isinstance(collection, rules.Subjects):
        return collection.filters
    if isinstance(collection, rules.Restrict):
        return (*_filters(collection.collection), *collection.filters)
    return collection.event.filters if isinstance(collection, rules.Calls) else ()


def subjects_chosen_by(rule: Rule, vocabulary: Vocabulary) -> Iterator[Expr]:
    """Conditions on the subjects: their filters."""
    for clause in rule.subjects:
        of = plain(clause.collection.type)
        item = of.item if isinstance(of, types.ListOf | types.SetOf) else types.SCALAR
        subject = rules.Variable(item, NOWHERE, clause.variable)
        for each in _filters(clause.collection):
            yield _filtered(subject, each, vocabulary)


def windows_chosen_by(rule: Rule, vocabulary: Vocabulary) -> Iterator[Expr]:
    """Conditions on the window: thinning, and the filters of its event."""
    event = rule.window.event
    if event is not None and rule.window.kind != "calls":
        call = rules.WindowCall(CallOf(event.events[0]), NOWHERE)
        for each in event.filters:
            yield _filtered(call, each, vocabulary)
    if rule.window.kind == "each" and rule.window.span == "step":
        zero = rules.Constant(types.INT, NOWHERE, 0)  # Step 0 is no window.
        yield rules.Compare(types.BOOL, NOWHERE, ">", _ambient("step"), zero)


def thinned_by(rule: Rule) -> Expr | None:
    """The condition of `every`, on the start of the window; None without one."""
    every = rule.window.every
    if every is None:
        return None
    by = rules.Constant(types.INT, NOWHERE, every.count)
    arguments = (_ambient(every.unit), by)
    return rules.Function(types.BOOL, NOWHERE, "divisible", arguments)


def _ambient(name: str) -> rules.Ambient:
    return rules.Ambient(types.INT, NOWHERE, name)


def _filtered(item: Expr, wanted: Filter, vocabulary: Vocabulary) -> Expr:
    if wanted.field == "class":
        return rules.Function(types.BOOL, NOWHERE, "isinstance", (item, wanted.value))
    kind = plain(item.type)
    declared = None
    if isinstance(kind, Entity) and (entity := vocabulary.entity(kind.kind)) is not None:
        declared = entity.field(wanted.field)
    elif isinstance(kind, CallOf) and (event := vocabulary.event(kind.event)) is not None:
        declared = event.field(wanted.field)
    of = wanted.value.type if declared is None else declared.type
    field = rules.Field(of, NOWHERE, item, wanted.field)
    return rules.Compare(types.BOOL, NOWHERE, "==", field, wanted.value)


# --- reads that mean the same on both sides -----------------------------------------------------


def of_the_window(expr: Expr) -> bool:
    """True if the expression depends on the length of the window: calls in it, batches, the result
    of its call.
    """
    return any(
        isinstance(part, rules.Calls | rules.LastCall)
        or (isinstance(part, rules.Subjects) and part.kind in PASSING)
        or (isinstance(part, rules.Field) and isinstance(part.base, rules.WindowCall))
        for part in walk(expr)
    )


def over_the_group(expr: Expr) -> bool:
    """A fold over the members, which is the same for each of them."""
    if isinstance(expr, rules.Old | rules.Previous | rules.First):
        return over_the_group(expr.value)
    return isinstance(expr, rules.Fold) and expr.scope == "group"
