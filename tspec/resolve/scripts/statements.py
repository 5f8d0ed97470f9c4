"""What happens in a script: calls, states from here on, and what is so on some ranks only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tspec.diagnostics import did_you_mean
from tspec.resolve.expressions.events import pattern
from tspec.resolve.expressions.fields import fields_of
from tspec.resolve.expressions.place import Place, Refused
from tspec.resolve.program import types
from tspec.resolve.program.scripts import (
    Bare,
    Called,
    Mention,
    Named,
    OnRanks,
    Said,
    Set,
    SetContext,
    Statement,
    Target,
)
from tspec.resolve.program.types import CallOf, Entity, MapOf, Type, plain
from tspec.resolve.scripts.values import TENSOR_FEATURES, said, subject
from tspec.source import Span
from tspec.syntax import nodes

Happening = nodes.Happening | nodes.Change | nodes.RankScript

COUNTED = ("step", "rank")
"""Context that the script itself counts."""


@dataclass(slots=True)
class Stage:
    """Where statements stand: their file's names, how many ranks there are, and if any was wrong."""

    place: Place
    ranks: int
    failed: bool = False


def statements(
    given: Sequence[Happening], stage: Stage, on_ranks: bool = False
) -> tuple[Statement, ...]:
    """The statements of a block. What is wrong with them is reported."""
    found: list[Statement] = []
    for each in given:
        try:
            found += _statement(each, stage, on_ranks)
        except Refused:
            stage.failed = True
    return tuple(found)


def _statement(node: Happening, stage: Stage, on_ranks: bool) -> list[Statement]:
    match node:
        case nodes.RankScript():
            return [_on_ranks(node, stage, on_ranks)]
        case nodes.Change():
            return [_change(node, stage.place, None)]
        case nodes.Happening(event=event, inside=inside):
            named = subject(event)
            if named is not None and named.kind in stage.place.scope.entities:
                return _of_subject(node, named, stage)
            within = statements(inside, stage, on_ranks)
            return [_called(event, within, stage)]


def _on_ranks(node: nodes.RankScript, stage: Stage, on_ranks: bool) -> OnRanks:
    place = stage.place
    if on_ranks:
        place.report("TS0191", "a rank holds no other ranks", node)
        stage.failed = True
    for rank in node.ranks:
        if rank >= stage.ranks:
            has = f"it has {stage.ranks}, counted from 0"
            hint = f"write `events on {rank + 1} ranks`"
            place.report("TS0191", f"there is no rank {rank}: {has}", node, hint)
            stage.failed = True
    return OnRanks(node.ranks, statements(node.inside, stage, True))


def _called(event: nodes.Expr, inside: tuple[Statement, ...], stage: Stage) -> Called:
    """A call, with the values of the fields that are given."""
    place = stage.place
    call = event if isinstance(event, nodes.Call) else None
    name = pattern(call.function if call else event, place).events[0]
    if call is None:
        return Called(name, (), inside, event.span)
    given: dict[str, Said] = {}
    failed = False
    for argument in call.arguments:
        try:
            word, value = _field_said(argument, name, place)
        except Refused:
            failed = True
            continue
        if word in given:
            place.report("TS0104", f"`{word}:` is given twice", argument)
            failed = True
        given[word] = value
    if failed:
        raise Refused
    return Called(name, tuple(given.items()), inside, event.span)


def _field_said(argument: nodes.Argument, event: str, place: Place) -> tuple[str, Said]:
    """`lr: 0.1`: a field of a call and its value. Raises Refused."""
    if argument.name is None:
        place.refuse("TS0127", "a call's fields are said by name", argument, "write `lr: 0.1`")
    fields = fields_of(CallOf(event), place) or {}
    word = argument.name.text
    if word not in fields:
        listed = "it has " + ", ".join(f"`{f}`" for f in list(fields)[:8]) if fields else None
        hint = did_you_mean(word, fields) or listed
        place.refuse("TS0124", f"a call of {event} has no field `{word}`", argument.name, hint)
    return word, said(argument.value, fields[word], place)


# --- states -------------------------------------------------------------------------------------


def _of_subject(node: nodes.Happening, named: Named, stage: Stage) -> list[Statement]:
    """`parameter("w") { requires_grad = true, grad.norm = 2.0 }`: the subject, and fields of it."""
    found: list[Statement] = [Mention(named, node.event.span)]
    for each in node.inside:
        if not isinstance(each, nodes.Change):
            hint = "a block after a subject sets its fields: `requires_grad = true`"
            stage.place.report("TS0193", "nothing happens inside of a subject", each, hint)
            stage.failed = True
            continue
        try:
            found.append(_change(each, stage.place, named))
        except Refused:
            stage.failed = True
    return found


def _change(node: nodes.Change, place: Place, of: Named | None) -> Set | SetContext:
    """`parameter("head.weight").grad.norm = nan`, or inside of a subject's block `grad.norm = nan`."""
    context = nodes.dotted_text(node.target) if of is None else None
    if context is not None and context in place.scope.ambient:
        if context in COUNTED:
            place.refuse("TS0193", f"`{context}` is counted by the script itself", node.target)
        value = said(node.value, place.scope.ambient[context].type, place)
        return SetContext(context, value, node.span)
    target, kind = _target(node.target, place, of)
    if not target.path:
        if isinstance(node.value, nodes.Name) and node.value.text == "gone":
            return Set(target, Bare("gone", node.value.span), node.span)
        hint = f"write `= gone`, or name a field of the {target.subject.kind}"
        place.refuse("TS0193", "a subject has no value of its own", node, hint)
    return Set(target, said(node.value, kind, place), node.span)


def _target(node: nodes.Expr, place: Place, of: Named | None) -> tuple[Target, Type]:
    """What is set, and its type. Raises Refused."""
    match node:
        case nodes.Name(text=name) if of is not None:
            return _field(Target(of), Entity(of.kind), name, node.span, place)
        case nodes.Attribute(value=owner, name=word):
            base, kind = _target(owner, place, of)
            return _field(base, kind, word.text, word.span, place)
        case nodes.Index(value=owner, index=nodes.String(value=key)):
            base, kind = _target(owner, place, of)
            found = plain(kind)
            if isinstance(found, MapOf) and base.key is None:
                return Target(base.subject, base.path, None, key), found.value
        case nodes.Call():
            named = subject(node)
            if named is not None and of is None:
                if named.kind in place.scope.entities:
                    return Target(named), Entity(named.kind)
                hint = did_you_mean(named.kind, place.scope.entities)
                place.refuse("TS0120", f"there is no entity `{named.kind}`", node, hint)
    hint = 'write `parameter("head.weight").grad.norm = nan`, or a name of the context'
    place.refuse("TS0193", "this is nothing that a script can set", node, hint)


def _field(base: Target, kind: Type, name: str, span: Span, place: Place) -> tuple[Target, Type]:
    found = plain(kind)
    if found == types.TENSOR and base.feature is None and base.path:
        known = dict(TENSOR_FEATURES)
        target = Target(base.subject, base.path, name)
    else:
        known = dict(fields_of(found, place) or {}) if isinstance(found, Entity) else {}
        target = Target(base.subject, (*base.path, name))
    if name not in known:
        place.refuse("TS0121", f"a {found} has no field `{name}`", span, did_you_mean(name, known))
    return target, known[name]
