"""Refuses `let`s that name themselves, or whose value with all `let`s in it is too large.

A `let` is inlined at each use. A chain of `let`s makes a deep value; a `let` that names another one
twice doubles its size.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tspec.resolve.expressions.functions import is_function
from tspec.resolve.expressions.paths import path_of
from tspec.resolve.findings import Findings
from tspec.resolve.names.scope import LetBinding, LetKey, Scope
from tspec.source import Span
from tspec.syntax import nodes

DEEPEST = 50
"""Most levels of a value with its `let`s inlined. Values are walked by recursion."""

LARGEST = 10_000
"""Most names, numbers and operators of a value with its `let`s inlined."""


@dataclass(frozen=True, slots=True)
class _Use:
    """A use of a `let` in the value of another one, and its depth there."""

    binding: LetBinding
    span: Span
    level: int


@dataclass(frozen=True, slots=True)
class _Value:
    """The size of a `let`'s value as written, and the `let`s that it names."""

    binding: LetBinding
    uses: tuple[_Use, ...]
    levels: int
    size: int


@dataclass(frozen=True, slots=True)
class _Extent:
    """The size of a `let`'s value with its `let`s inlined."""

    levels: int
    size: int


def refused_lets(scopes: Mapping[str, Scope], findings: Findings) -> frozenset[LetKey]:
    """The `let`s that no expression may use. The reason is reported."""
    values = {
        binding.key: _value(binding, scope)
        for scope in scopes.values()
        for binding in scope.lets.values()
        if binding.unit.key == scope.unit.key
    }
    waiting = {key: {use.binding.key for use in value.uses} for key, value in values.items()}
    users: dict[LetKey, list[LetKey]] = {}
    for key, used in waiting.items():
        for each in used:
            users.setdefault(each, []).append(key)
    extents: dict[LetKey, _Extent] = {}
    refused: set[LetKey] = set()
    ready = [key for key, used in waiting.items() if not used]
    while ready:
        key = ready.pop()
        value = values[key]
        if refused.isdisjoint(use.binding.key for use in value.uses):
            extents[key] = _extent(value, extents)
            if value.uses and _too_large(value, extents[key], findings):
                refused.add(key)
        else:
            refused.add(key)
        for user in users.get(key, ()):
            waiting[user].discard(key)
            if not waiting[user]:
                ready.append(user)
    circular = {key: values[key] for key, used in waiting.items() if used}
    _report_circles(circular, findings)
    return frozenset(refused | circular.keys())


def _value(binding: LetBinding, scope: Scope) -> _Value:
    uses: list[_Use] = []
    levels = size = 0
    pending: list[tuple[nodes.Node, int]] = [(binding.node.value, 1)]
    while pending:
        node, level = pending.pop()
        levels, size = max(levels, level), size + 1
        path = path_of(node) if isinstance(node, nodes.Expr) else None
        if path is not None:
            found = _named(path.words, scope)
            if found is not None:
                uses.append(_Use(found, path.span(), level))
            continue
        pending += [(child, level + 1) for child in _operands(node)]
    uses.sort(key=lambda use: use.span)
    return _Value(binding, tuple(uses), levels, size)


def _operands(node: nodes.Node) -> Iterator[nodes.Node]:
    for child in node.children():
        called = isinstance(node, nodes.Call) and child is node.function
        if not (called and isinstance(child, nodes.Name) and is_function(child.text)):
            yield child


def _named(words: tuple[str, ...], scope: Scope) -> LetBinding | None:
    """The `let` that a path begins with, by the same precedence as in reading paths."""
    for count in range(len(words), 0, -1):
        text = ".".join(words[:count])
        if text in scope.lets:
            return scope.lets[text]
        if text in scope.ambient or text in scope.collections or text in scope.events:
            return None
    if words[0] in scope.aliases and len(words) > 1:
        return _named(words[1:], scope.aliases[words[0]])
    return None


def _extent(value: _Value, known: Mapping[LetKey, _Extent]) -> _Extent:
    used = [(use.level, known[use.binding.key]) for use in value.uses]
    return _Extent(
        max([value.levels, *(level + extent.levels for level, extent in used)]),
        value.size + sum(extent.size for _, extent in used),
    )


def _too_large(value: _Value, extent: _Extent, findings: Findings) -> bool:
    what = (
        f"nested in {extent.levels} levels, and {DEEPEST} are read" if extent.levels > DEEPEST
        else f"made of {extent.size:,} parts, and {LARGEST:,} are read" if extent.size > LARGEST
        else ""
    )  # fmt: skip
    if what:
        name = value.binding.node.name
        message = f"with the values of the `let`s that it names, `{name.text}` is {what}"
        hint = "write its value with fewer `let`s"
        findings.add("TS0108", message, (value.binding.unit.source, name.span), hint=hint)
    return bool(what)


def _report_circles(circular: Mapping[LetKey, _Value], findings: Findings) -> None:
    """Each circle once, where its first `let` names the second."""
    done: set[LetKey] = set()
    for start in circular:
        way: dict[LetKey, _Use] = {}
        key = start
        while key not in done and key not in way:
            way[key] = next(use for use in circular[key].uses if use.binding.key in circular)
            key = way[key].binding.key
        if key in way:
            circle = list(way)[list(way).index(key) :]
            names = [circular[each].binding.node.name.text for each in (*circle, key)]
            said = f": {' -> '.join(names)}" if len(circle) > 1 else ""
            message = f"the value of `{names[0]}` is made of itself{said}"
            place = (circular[key].binding.unit.source, way[key].span)
            findings.add("TS0107", message, place)
        done.update(way)
