"""The meaning of names and dotted names: `p.grad`, `optimizer.step.lr`, `models` and
`torch.nn.Linear`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from itertools import chain
from typing import Any

from tspec.diagnostics import Related, did_you_mean
from tspec.resolve import torch_names
from tspec.resolve.expressions.environment import Environment, Refused
from tspec.resolve.expressions.fields import field_of
from tspec.resolve.findings import Findings
from tspec.resolve.names.callables import check_whole
from tspec.resolve.names.scope import LetBinding
from tspec.resolve.names.type_names import words_of
from tspec.resolve.program import rules, types
from tspec.resolve.program.types import Entity, ListOf, Type, plain
from tspec.source import Span
from tspec.syntax import nodes


@dataclass(frozen=True, slots=True)
class Path:
    """`a.b.c` as its words."""

    words: tuple[str, ...]
    spans: tuple[Span, ...]

    def text(self, count: int | None = None) -> str:
        """The first words with their dots."""
        return ".".join(self.words[:count])

    def span(self, count: int | None = None) -> Span:
        """The span of the first words."""
        return self.spans[0].to(self.spans[: count or len(self.spans)][-1])


def path_of(node: nodes.Expr) -> Path | None:
    """The path that names and attributes form; None for all else."""
    if isinstance(node, nodes.Name):
        return Path((node.text,), (node.span,))
    if isinstance(node, nodes.Attribute):
        owner = path_of(node.value)
        if owner is not None:
            return Path((*owner.words, node.name.text), (*owner.spans, node.name.span))
    return None


def lower_path(path: Path, env: Environment, want: Type | None) -> rules.Expr:
    """The value that a path names, its later words as fields. Raises Refused."""
    found, used = _head(path, env, want)
    for count in range(used, len(path.words)):
        found = field_of(found, path.words[count], path.spans[count], env)
    return found


def is_bare(node: nodes.Expr, env: Environment) -> bool:
    """True if a word is a value only beside a value of its type, such as `train`.

    An event of that name hides no value: an event alone is none.
    """
    if not isinstance(node, nodes.Name):
        return False
    scope = env.scope
    named = (env.variables, scope.lets, scope.collections, scope.ambient)
    return not any(node.text in names for names in named)


def _head(path: Path, env: Environment, want: Type | None) -> tuple[rules.Expr, int]:
    """The meaning of the longest prefix of a path that is a name, and the number of its words."""
    scope = env.scope
    first = path.words[0]
    if first in env.unknown or path.text() in scope.unit.broken or first in scope.unit.broken:
        raise Refused
    if first in env.variables:
        return rules.Variable(env.variables[first], path.spans[0], first), 1
    if len(path.words) == 1 and first in words_of(want) and is_bare(nodes.Name(text=first), env):
        return rules.Constant(plain(want) if want else types.STRING, path.spans[0], first), 1
    for count in range(len(path.words), 0, -1):
        found = _named(path, count, env, want)
        if found is not None:
            return found, count
    if first in scope.aliases and len(path.words) > 1:
        return _through_alias(path, env, want), len(path.words)
    if path.text().startswith("torch.") or want == types.CLASS:
        return class_constant(path, env), len(path.words)
    _refuse_unknown(path, env, want)
    raise Refused


def _named(path: Path, count: int, env: Environment, want: Type | None) -> rules.Expr | None:
    text, span, scope = path.text(count), path.span(count), env.scope
    if text in scope.lets:
        return inline(scope.lets[text], env, span, want)
    if text in scope.ambient:
        return rules.Ambient(scope.ambient[text].type, span, text)
    if text in scope.collections:
        kind = scope.collections[text].name
        return rules.Subjects(ListOf(Entity(kind)), span, kind)
    if text in scope.events:
        return _call(path, count, env)
    return None


def _call(path: Path, count: int, env: Environment) -> rules.Expr:
    """`E` of `E.field`: the window's own call, or the last one of E in the window."""
    event, span = path.text(count), path.span(count)
    if count == len(path.words):
        env.refuse(
            "TS0126",
            f"`{event}` is an event, and no value",
            span,
            f"its calls are `calls({event})`, a field of one is `{event}.field`",
        )
    kind = types.CallOf(event)
    window = env.window
    own = window.event if window is not None and window.kind != "calls" else None
    if own is not None and own.events == (event,):
        return rules.WindowCall(kind, span)
    return rules.LastCall(kind, span, rules.EventPattern((event,)))


def _through_alias(path: Path, env: Environment, want: Type | None) -> rules.Expr:
    """`mg.layers` after `use std.megatron as mg`: resolved with the names of that module."""
    rest = Path(path.words[1:], path.spans[1:])
    inside = env.scope.aliases[path.words[0]]
    # The text is still this file's: only the names are the other's.
    borrowed = replace(inside, unit=replace(inside.unit, source=env.scope.source))
    found = lower_path(rest, replace(env, scope=borrowed), want)
    return found


def class_constant(path: Path, env: Environment) -> rules.Constant:
    """The constant of a class given by its dotted path. Classes of torch must exist; others are
    taken as written.
    """
    text = path.text()
    if text.startswith("torch.") and not torch_names.is_class(text):
        known = torch_names.is_callable(text)
        version = torch_names.version()
        message = f"`{text}` is no class" if known else f"torch {version} has no class `{text}`"
        near = [name for name in torch_names.near(text) if torch_names.is_class(name)]
        hint = None if known else did_you_mean(text, near)
        env.refuse("TS0112", message, path.span(), hint)
    if len(path.words) == 1:
        hint = did_you_mean(text, [*env.scope.lets, *env.variables])
        message = f"`{text}` is no class: a class is a dotted path"
        env.refuse("TS0120", message, path.span(), hint)
    if path.words[0] != "torch" and did_you_mean(path.words[0], ["torch"]):
        message = f"there is no package `{path.words[0]}`"
        env.refuse("TS0112", message, path.spans[0], "did you mean `torch`?")
    check_whole(text, (env.scope.source, path.span()), env.findings)
    return rules.Constant(types.CLASS, path.span(), text)


def inline(binding: LetBinding, env: Environment, span: Span, want: Type | None) -> rules.Expr:
    """The value of a `let`, inlined at its name. Raises Refused."""
    if binding.key in env.scope.refused:
        raise Refused
    scope = env.scope.home(binding.unit)
    unheard = Findings()
    inside = replace(env, scope=scope, findings=unheard, variables={})
    try:
        found = inside.lower(binding.node.value, want)
    except Refused:
        _refuse_let(binding, env, span, unheard)
        raise
    return respan(found, span)


def _refuse_let(binding: LetBinding, env: Environment, span: Span, unheard: Findings) -> None:
    """Report the error of a `let`'s value at a place where the `let` is used.

    Nothing is reported if the value names a declaration that could not be read; that was reported
    before.
    """
    if not unheard.unordered():
        return
    first = unheard.unordered()[0]
    message = f"`{binding.node.name.text}` cannot stand here: {first.message}"
    there = Related(binding.node.name.span, "its value", binding.unit.source)
    env.report(first.code, message, span, first.hint, (there,))


def respan(value: rules.Expr, span: Span) -> rules.Expr:
    """A typed expression in which every part has one span: that of the `let`'s name."""
    return replace(value, **_moved_fields(value, span), span=span)


def _moved_fields(
    value: rules.Expr | rules.Filter | rules.EventPattern, span: Span
) -> dict[str, Any]:
    parts = {each.name: getattr(value, each.name) for each in fields(value)}
    return {name: _moved(part, span) for name, part in parts.items() if name != "span"}


def _moved(part: object, span: Span) -> object:
    if isinstance(part, tuple):
        return tuple(_moved(each, span) for each in part)
    if isinstance(part, rules.Filter | rules.EventPattern):
        return replace(part, **_moved_fields(part, span))
    return respan(part, span) if isinstance(part, rules.Expr) else part


def _refuse_unknown(path: Path, env: Environment, want: Type | None) -> None:
    first, scope = path.words[0], env.scope
    words = sorted(words_of(want))
    hint: str | None
    if words and len(path.words) == 1:
        of = plain(want) if want else None
        hint = did_you_mean(first, [*words, *env.variables]) or f"its values are {_listed(words)}"
        what = str(of) if of in (types.DTYPE, types.DEVICE) else f"one of {of}"
        env.refuse("TS0135", f"`{first}` is no {what}", path.spans[0], hint)
    if env.clause == "for" and want is None and len(path.words) == 1:
        _refuse_unknown_collection(path, env)
    known = [*env.variables, *scope.lets, *scope.ambient, *scope.collections, *scope.aliases]
    known += [*scope.events]
    heads = range(len(path.words), 0, -1)
    declared = (count for count in heads if scope.declared_by(path.text(count)))
    near = (count for count in heads if did_you_mean(path.text(count), known))
    count = next(chain(declared, near), 0)
    if count:
        span = path.span(count)
        hint = scope.hint(path.text(count), known)
        env.refuse("TS0120", f"there is no `{path.text(count)}`", span, hint)
    if len(path.words) == 1 and first in words_of(types.DTYPE):
        hint = "a bare word is a value only where it is compared with one of its type"
        env.refuse("TS0135", f"`{first}` is no value here", path.spans[0], hint)
    env.refuse("TS0120", f"there is no `{first}`", path.spans[0])


def _refuse_unknown_collection(path: Path, env: Environment) -> None:
    """Refuse an unknown word after `in`. The hint names the collection that is probably meant, or lists all."""
    word, scope = path.words[0], env.scope
    meant = _COLLECTIONS.get(word)
    hint = f"did you mean `{meant}`?" if meant in scope.collections else None
    hint = hint or scope.hint(word, [*env.variables, *scope.lets, *scope.collections])
    if hint is None and scope.collections:
        hint = f"the collections are {', '.join(f'`{each}`' for each in scope.collections)}"
    env.refuse("TS0120", f"there is no `{word}`", path.spans[0], hint)


_COLLECTIONS = {"layers": "modules", "weights": "parameters"}
"""Usual word for things of a model -> the collection of them."""


def _listed(words: list[str]) -> str:
    shown = ", ".join(f"`{word}`" for word in words[:6])
    return shown if len(words) <= 6 else f"{shown}, …"
