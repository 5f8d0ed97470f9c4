"""Which parts of a rule changed, and which way each of them goes by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tspec.diff import clauses
from tspec.diff.actions import compare
from tspec.diff.changes import Part
from tspec.diff.relation import relate
from tspec.logic.implied import renamed
from tspec.logic.occurrences import unfiltered
from tspec.resolve import rules, types
from tspec.resolve.rules import Holds, Rule, Vocabulary
from tspec.source import NOWHERE

ALWAYS_BROKEN = Holds(rules.Constant(types.BOOL, NOWHERE, False))


def changed_parts(old: Rule, new: Rule, vocabulary: Vocabulary) -> Iterator[Part]:
    """Each part that changed. A part is judged alone, as if the others were the old ones."""
    like = renamed(new, old)
    yield from _occurrences(old, new, like, vocabulary)
    if old.when != like.when:
        change = _relation(
            replace(old, expect=ALWAYS_BROKEN),
            replace(old, expect=ALWAYS_BROKEN, when=like.when),
            vocabulary,
        )
        yield Part("when", change, clauses.when(old), clauses.when(new))
    if old.expect != like.expect:
        change = _relation(
            replace(old, when=None), replace(old, when=None, expect=like.expect), vocabulary
        )
        yield Part("expect", change, clauses.claim(old.expect), clauses.claim(new.expect))
    if old.draft != new.draft:
        change = "accepted" if old.draft else "withdrawn"
        said = ("draft", "") if old.draft else ("", "draft")
        yield Part("draft", change, *said)
    strictness = compare(old.responses, new.responses)
    if strictness != "same":
        said = clauses.action(old.responses), clauses.action(new.responses)
        yield Part("action", strictness, *said)


def _occurrences(old: Rule, new: Rule, like: Rule, vocabulary: Vocabulary) -> Iterator[Part]:
    """Subjects, group, window and thinning: which occurrences there are."""
    bare = replace(old, when=None, expect=ALWAYS_BROKEN)
    if old.subjects != like.subjects:
        change = "changed"
        if _unfiltered(old) == _unfiltered(like):
            change = _relation(bare, replace(bare, subjects=like.subjects), vocabulary)
        said = clauses.subjects(old.subjects), clauses.subjects(new.subjects)
        yield Part("subjects", change, *said)
    if old.across != like.across:
        yield Part("group", "changed", clauses.group(old), clauses.group(new))
    before, after = old.window, like.window
    alike = replace(after, every=before.every, once=before.once)
    if before != alike and before.kind != "calls":
        change = "changed"
        events = [each.event.events if each.event is not None else () for each in (before, after)]
        if (before.kind, before.span, events[0]) == (after.kind, after.span, events[1]):
            change = _relation(bare, replace(bare, window=alike), vocabulary)
        yield Part("window", change, clauses.window(before), clauses.window(new.window))
    if (before.every, before.once) != (after.every, after.once):
        change = "changed"
        if before.kind == after.kind and before.span == after.span:
            thinned = replace(before, every=after.every, once=after.once)
            change = _relation(bare, replace(bare, window=thinned), vocabulary)
        yield Part("thinning", change, clauses.thinning(before), clauses.thinning(after))


def _unfiltered(rule: Rule) -> list[tuple[str, rules.Expr]]:
    return [(each.variable, unfiltered(each.collection)) for each in rule.subjects]


def _relation(old: Rule, new: Rule, vocabulary: Vocabulary) -> str:
    return relate(old, new, vocabulary, shown=False).relation
