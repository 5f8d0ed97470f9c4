"""Attributes: fields of subjects and calls, and features of tensors."""

from __future__ import annotations

from collections.abc import Collection

from tspec.builtin.features import FUNCTIONS
from tspec.diagnostics import did_you_mean, with_article
from tspec.resolve.expressions.environment import Environment
from tspec.resolve.names.type_names import MEMORY_FORMAT
from tspec.resolve.program import rules, types
from tspec.resolve.program.types import CallOf, Entity, ListOf, MapOf, SetOf, Type, item_of, plain
from tspec.source import Span

FEATURES: dict[str, Type] = {
    "shape": types.SHAPE,
    "dtype": types.DTYPE,
    "device": types.DEVICE,
    "memory_format": MEMORY_FORMAT,
    "requires_grad": types.BOOL,
    "name": types.Optional(types.STRING),
}
"""Features that are read with a dot, as in torch; the others are functions."""

DEVICE_FIELDS: dict[str, Type] = {"type": types.STRING, "index": types.Optional(types.INT)}


def field_of(base: rules.Expr, name: str, span: Span, env: Environment) -> rules.Expr:
    """`base.name`. Of a collection it is the list of the fields. Raises Refused."""
    of = env.there(base)
    whole = base.span.to(span)
    item = item_of(of)
    if item is not None and of != types.SHAPE:
        found = _one(plain(item), name, span, env)
        kind = _of_many(found)
    else:
        found = _one(of, name, span, env)
        kind = found
    _check_instant(base, name, span, env)
    if name in FEATURES and plain(item or of) == types.TENSOR:
        return rules.Feature(kind, whole, name, base)
    return rules.Field(kind, whole, base, name)


def _of_many(of: Type) -> Type:
    """The type of one field of a whole collection: a list, or the union of sets."""
    of = plain(of)
    return of if isinstance(of, SetOf) else ListOf(of)


def fields_of(of: Type, env: Environment) -> dict[str, Type] | None:
    """The fields of a type by name, or None for a type that has none."""
    if isinstance(of, Entity):
        entity = env.scope.entity(of.kind)
        return {each.name: each.type for each in entity.fields} if entity else {}
    if isinstance(of, CallOf):
        return {name: each.type for name, each in env.scope.call_fields(of.event).items()}
    if of == types.TENSOR:
        return FEATURES
    return DEVICE_FIELDS if of == types.DEVICE else None


def _one(of: Type, name: str, span: Span, env: Environment) -> Type:
    known = fields_of(of, env)
    if known is None:
        hint = f'an entry of a map is written `["{name}"]`' if isinstance(of, MapOf) else None
        env.refuse("TS0121", f"{with_article(of)} has no fields, and so no `{name}`", span, hint)
    if name in known:
        return known[name]
    hint = did_you_mean(name, known)
    if of == types.TENSOR and name in FUNCTIONS:
        hint = f"it is a function: write `{name}(...)` around the tensor"
    hint = hint or fields_in_words(known)
    env.refuse("TS0121", f"{with_article(of)} has no field `{name}`", span, hint)


def fields_in_words(known: Collection[str]) -> str:
    """``it has `a`, `b`, `c```; a type without fields says so."""
    if not known:
        return "it has no fields"
    return "it has " + ", ".join(f"`{each}`" for each in known)


def _check_instant(base: rules.Expr, name: str, span: Span, env: Environment) -> None:
    """Refuse to read a call's result before the call has returned."""
    if not isinstance(base, rules.WindowCall) or env.window is None:
        return
    assert isinstance(base.type, CallOf)
    declared = env.scope.call_fields(base.type.event).get(name)
    if declared is None or not declared.reads_result:
        return
    if env.window.kind == "before":
        event = base.type.event
        message = f"`{name}` is known when `{event}` has returned, and it has not begun"
        env.refuse("TS0160", message, span, f"write `after {event}`")
