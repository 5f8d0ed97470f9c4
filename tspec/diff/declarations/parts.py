"""The changed parts of a rule, and the direction of each change."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tspec.diff.changes import ChangedPart, PartName
from tspec.diff.declarations import clauses
from tspec.diff.declarations.actions import compare
from tspec.diff.witness.relation import Relation, relate
from tspec.logic.implied import renamed
from tspec.logic.occurrences import unfiltered
from tspec.resolve.program import rules, types
from tspec.resolve.program.rules import Holds, Rule, Vocabulary, Window
from tspec.resolve.program.text import claim_text
from tspec.resolve.program.walk import parts
from tspec.source import NOWHERE

ALWAYS_BROKEN = Holds(rules.Constant(types.BOOL, NOWHERE, False))


@dataclass(frozen=True, slots=True)
class _Aspect:
    """A part that changed. `alone`: two rules that differ in it only; None if not comparable."""

    part: PartName
    old: str
    new: str
    alone: tuple[Rule, Rule] | None


def changed_parts(
    old: Rule, new: Rule, vocabulary: Vocabulary, relation: Relation
) -> Iterator[ChangedPart]:
    """Each part that changed.

    Each of several is compared as if the others were unchanged. A single one has `relation`, the
    relation of the rules.
    """
    like = renamed(new, old)
    aspects = [*_occurrences(old, new, like), *_conditions(old, new, like)]
    for each in aspects:
        change: str = "changed"
        if each.alone is not None and all(map(_knows_its_variables, each.alone)):
            change = relation
            if len(aspects) > 1:
                change = relate(*each.alone, vocabulary, shown=False).relation
        yield ChangedPart(each.part, change, each.old, each.new)
    if old.draft != new.draft:
        change = "accepted" if old.draft else "withdrawn"
        said = ("draft", "") if old.draft else ("", "draft")
        yield ChangedPart("draft", change, *said)
    strictness = compare(old.responses, new.responses)
    if strictness != "same":
        said = clauses.action(old.responses), clauses.action(new.responses)
        yield ChangedPart("action", strictness, *said)


def _knows_its_variables(rule: Rule) -> bool:
    """A part of another rule may read subjects that this one does not have."""
    known = {clause.variable for clause in rule.subjects}
    return all(part.name in known for part in parts(rule) if isinstance(part, rules.Variable))


def _conditions(old: Rule, new: Rule, like: Rule) -> Iterator[_Aspect]:
    """`when` is compared by how often it is due, `expect` by how often it is violated."""
    if old.when != like.when:
        bare = replace(old, expect=ALWAYS_BROKEN)
        alone = (bare, replace(bare, when=like.when))
        yield _Aspect("when", clauses.when(old), clauses.when(new), alone)
    if old.expect != like.expect:
        bare = replace(old, when=None)
        alone = (bare, replace(bare, expect=like.expect))
        yield _Aspect("expect", claim_text(old.expect), claim_text(new.expect), alone)


def _occurrences(old: Rule, new: Rule, like: Rule) -> Iterator[_Aspect]:
    """Subjects, group, window and thinning: which occurrences there are."""
    bare = replace(old, when=None, expect=ALWAYS_BROKEN)
    if old.subjects != like.subjects:
        filtered = _unfiltered(old) == _unfiltered(like)
        alone = (bare, replace(bare, subjects=like.subjects, window=_of_calls(old, like)))
        said = clauses.subjects(old.subjects), clauses.subjects(new.subjects)
        yield _Aspect("subjects", *said, alone if filtered else None)
    if old.across != like.across:
        yield _Aspect("group", clauses.group(old), clauses.group(new), None)
    before, after = old.window, like.window
    place = replace(after, every=before.every, once=before.once)
    if before != place and before.kind != "calls":
        same = _unthinned(before) == _unthinned(after)
        said = clauses.window(before), clauses.window(new.window)
        yield _Aspect("window", *said, (bare, replace(bare, window=place)) if same else None)
    if (before.every, before.once) != (after.every, after.once):
        same = before.kind == after.kind and before.span == after.span
        thinned = replace(before, every=after.every, once=after.once)
        said = clauses.thinning(before), clauses.thinning(after)
        yield _Aspect("thinning", *said, (bare, replace(bare, window=thinned)) if same else None)


def _of_calls(old: Rule, like: Rule) -> Window:
    """The window of calls that a `for` gives goes with it; all others stay."""
    return like.window if old.window.kind == like.window.kind == "calls" else old.window


def _unthinned(window: Window) -> tuple[object, ...]:
    """The kind, span and events of a window, without filters."""
    events = window.event.events if window.event is not None else ()
    return (window.kind, window.span, events)


def _unfiltered(rule: Rule) -> list[tuple[str, rules.Expr]]:
    return [(each.variable, unfiltered(each.collection)) for each in rule.subjects]
