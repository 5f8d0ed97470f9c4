"""The statements of a script: calls, state changes, and blocks for some ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tspec.diagnostics import did_you_mean, with_article
from tspec.resolve.expressions.environment import Environment, Refused
from tspec.resolve.expressions.events import pattern
from tspec.resolve.expressions.fields import fields_in_words, fields_of
from tspec.resolve.program import types
from tspec.resolve.program.scripts import (
    CallStatement,
    Keyword,
    Mention,
    Named,
    OnRanks,
    ScriptValue,
    Set,
    SetContext,
    Statement,
    Target,
)
from tspec.resolve.program.types import CallOf, Entity, MapOf, Type, plain
from tspec.resolve.scripts.values import TENSOR_FEATURES, script_value, subject
from tspec.source import Span
from tspec.syntax import nodes
from tspec.values import STEP_OF_RUN

Happening = nodes.Happening | nodes.Change | nodes.RankScript

COUNTED = ("step", STEP_OF_RUN, "rank")
"""Context that the script itself counts."""


@dataclass(slots=True)
class ScriptContext:
    """The environment of a script's statements, the number of ranks, and whether a statement has an error."""

    env: Environment
    ranks: int
    failed: bool = False


def statements(
    given: Sequence[Happening], context: ScriptContext, on_ranks: bool = False
) -> tuple[Statement, ...]:
    """Type the statements of a block. Errors are reported."""
    found: list[Statement] = []
    for each in given:
        try:
            found += _statement(each, context, on_ranks)
        except Refused:
            context.failed = True
    return tuple(found)


def _statement(node: Happening, context: ScriptContext, on_ranks: bool) -> list[Statement]:
    match node:
        case nodes.RankScript():
            return [_on_ranks(node, context, on_ranks)]
        case nodes.Change():
            return [_change(node, context.env, None)]
        case nodes.Happening(event=event, inside=inside):
            named = subject(event)
            if named is not None and named.kind in context.env.scope.entities:
                return _of_subject(node, named, context)
            within = statements(inside, context, on_ranks)
            return [_called(event, within, context)]


def _on_ranks(node: nodes.RankScript, context: ScriptContext, on_ranks: bool) -> OnRanks:
    env = context.env
    if on_ranks:
        env.report("TS0191", "a rank holds no other ranks", node)
        context.failed = True
    for rank in node.ranks:
        if rank >= context.ranks:
            has = f"it has {context.ranks}, counted from 0"
            hint = f"write `events on {rank + 1} ranks`"
            env.report("TS0191", f"there is no rank {rank}: {has}", node, hint)
            context.failed = True
    return OnRanks(node.ranks, statements(node.inside, context, True))


def _called(
    event: nodes.Expr, inside: tuple[Statement, ...], context: ScriptContext
) -> CallStatement:
    """A call, with the values of the fields that are given."""
    env = context.env
    call = event if isinstance(event, nodes.Call) else None
    name = pattern(call.function if call else event, env).events[0]
    if call is None:
        return CallStatement(name, (), inside, event.span)
    given: dict[str, ScriptValue] = {}
    failed = False
    for argument in call.arguments:
        try:
            word, value = _field_said(argument, name, env)
        except Refused:
            failed = True
            continue
        if word in given:
            env.report("TS0104", f"`{word}:` is given twice", argument)
            failed = True
        given[word] = value
    if failed:
        raise Refused
    return CallStatement(name, tuple(given.items()), inside, event.span)


def _field_said(argument: nodes.Argument, event: str, env: Environment) -> tuple[str, ScriptValue]:
    """`lr: 0.1`: a field of a call and its value. Raises Refused."""
    if argument.name is None:
        env.refuse("TS0127", "a call's fields are given by name", argument, "write `lr: 0.1`")
    fields = fields_of(CallOf(event), env) or {}
    word = argument.name.text
    if word not in fields:
        hint = did_you_mean(word, fields) or fields_in_words(fields)
        env.refuse("TS0124", f"a call of {event} has no field `{word}`", argument.name, hint)
    return word, script_value(argument.value, fields[word], env)


# --- states -------------------------------------------------------------------------------------


def _of_subject(node: nodes.Happening, named: Named, context: ScriptContext) -> list[Statement]:
    """`parameter("w") { requires_grad = true, grad.norm = 2.0 }`: the subject, and fields of it."""
    found: list[Statement] = [Mention(named, node.event.span)]
    for each in node.inside:
        if not isinstance(each, nodes.Change):
            hint = "a block after a subject sets its fields: `requires_grad = true`"
            context.env.report("TS0193", "nothing happens inside of a subject", each, hint)
            context.failed = True
            continue
        try:
            found.append(_change(each, context.env, named))
        except Refused:
            context.failed = True
    return found


def _change(node: nodes.Change, env: Environment, of: Named | None) -> Set | SetContext:
    """`parameter("head.weight").grad.norm = nan`, or inside of a subject's block `grad.norm = nan`."""
    context = nodes.dotted_text(node.target) if of is None else None
    if context is not None and context in env.scope.ambient:
        if context in COUNTED:
            env.refuse("TS0193", f"`{context}` is counted by the script itself", node.target)
        value = script_value(node.value, env.scope.ambient[context].type, env)
        return SetContext(context, value, node.span)
    target, kind = _target(node.target, env, of)
    if not target.path:
        if isinstance(node.value, nodes.Name) and node.value.text == "gone":
            return Set(target, Keyword("gone", node.value.span), node.span)
        hint = f"write `= gone`, or name a field of the {target.subject.kind}"
        env.refuse("TS0193", "a subject has no value of its own", node, hint)
    return Set(target, script_value(node.value, kind, env), node.span)


def _target(node: nodes.Expr, env: Environment, of: Named | None) -> tuple[Target, Type]:
    """The target of an assignment and its type. Raises Refused."""
    match node:
        case nodes.Name(text=name) if of is not None:
            return _field(Target(of), Entity(of.kind), name, node.span, env)
        case nodes.Attribute(value=owner, name=word):
            base, kind = _target(owner, env, of)
            return _field(base, kind, word.text, word.span, env)
        case nodes.Index(value=owner, index=nodes.String(value=key)):
            base, kind = _target(owner, env, of)
            found = plain(kind)
            if isinstance(found, MapOf) and base.key is None:
                return Target(base.subject, base.path, None, key), found.value
        case nodes.Call():
            named = subject(node)
            if named is not None and of is None:
                if named.kind in env.scope.entities:
                    return Target(named), Entity(named.kind)
                hint = did_you_mean(named.kind, env.scope.entities)
                env.refuse("TS0120", f"there is no entity `{named.kind}`", node, hint)
    hint = 'write `parameter("head.weight").grad.norm = nan`, or a name of the context'
    env.refuse("TS0193", "a script cannot set this", node, hint)


def _field(
    base: Target, kind: Type, name: str, span: Span, env: Environment
) -> tuple[Target, Type]:
    found = plain(kind)
    if found == types.TENSOR and base.feature is None and base.path:
        known = dict(TENSOR_FEATURES)
        target = Target(base.subject, base.path, name)
    else:
        known = dict(fields_of(found, env) or {}) if isinstance(found, Entity) else {}
        target = Target(base.subject, (*base.path, name))
    if name not in known:
        message = f"{with_article(found)} has no field `{name}`"
        env.refuse("TS0121", message, span, did_you_mean(name, known) or fields_in_words(known))
    return target, known[name]
