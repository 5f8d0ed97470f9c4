"""All declarations that are neither vocabulary nor rules: layouts and trials, over all files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from tspec.diagnostics import Related
from tspec.resolve.findings import Findings
from tspec.resolve.names.scope import Scope
from tspec.resolve.program import declarations
from tspec.resolve.program.sharding import DimsDeclaration, LayoutDeclaration, MeshDeclaration
from tspec.resolve.program.trials import EquivalenceDeclaration, ReplayDeclaration
from tspec.resolve.scripts.tests import lower_test
from tspec.resolve.sharding.layouts import lower_layout
from tspec.resolve.sharding.meshes import lower_dims, lower_mesh
from tspec.resolve.trials.equivalences import lower_equivalence
from tspec.resolve.trials.replays import lower_replay
from tspec.source import Source, Span
from tspec.syntax import nodes


@dataclass(frozen=True, slots=True)
class OtherDeclarations:
    """The declarations of the files asked for, other than vocabulary and rules."""

    meshes: tuple[MeshDeclaration, ...]
    dims: tuple[DimsDeclaration, ...]
    layouts: tuple[LayoutDeclaration, ...]
    equivalences: tuple[EquivalenceDeclaration, ...]
    replays: tuple[ReplayDeclaration, ...]
    tests: tuple[declarations.TestDeclaration, ...]


class _ModuleMember(Protocol):
    @property
    def module(self) -> str: ...


D = TypeVar("D", bound=nodes.Declaration)
T = TypeVar("T", bound=_ModuleMember)
V = TypeVar("V")
_Key = tuple[str, str]
"""The key of a file, and a name in it."""


def lower_others(scopes: Sequence[Scope], findings: Findings) -> OtherDeclarations:
    """Resolve them all, in the order of their dependencies."""
    asked = {scope.unit.name for scope in scopes if scope.unit.asked}
    _refuse_doubles(scopes, findings)
    near = _NameLookup(scopes)
    meshes = {
        (s.unit.key, n.name.text): lower_mesh(n, s, findings) for n, s in _all(nodes.Mesh, scopes)
    }
    dims = {
        (s.unit.key, n.name.text): lower_dims(n, s, findings) for n, s in _all(nodes.Dims, scopes)
    }
    layouts: dict[_Key, LayoutDeclaration | None] = {}
    for node, scope in _all(nodes.Layout, scopes):
        known = near.named(meshes, scope), near.named(dims, scope)
        # A faulty mesh counts as declared, so that it is not reported as missing too.
        wrong = {name for names in known for name, value in names.items() if value is None}
        layouts[scope.unit.key, node.name.text] = (
            None
            if {node.mesh.text, node.name.text} & wrong
            else lower_layout(node, (_right(known[0]), _right(known[1])), scope, findings)
        )
    equivalences = [
        lower_equivalence(n, near.named(layouts, s), s, findings)
        for n, s in _all(nodes.Equivalence, scopes)
    ]
    replays = [lower_replay(n, s, findings) for n, s in _all(nodes.Replay, scopes)]
    tests = [
        lower_test(n, (_rules_seen(s, scopes), _right(near.named(meshes, s))), s, findings)
        for n, s in _all(nodes.Test, scopes)
    ]
    return OtherDeclarations(
        _of(meshes.values(), asked),
        _of(dims.values(), asked),
        _of(layouts.values(), asked),
        _of(equivalences, asked),
        _of(replays, asked),
        _of(tests, asked),
    )


def _all(kind: type[D], scopes: Sequence[Scope]) -> Iterator[tuple[D, Scope]]:
    for scope in scopes:
        for node in scope.unit.file.declarations:
            if isinstance(node, kind):
                yield node, scope


def _of(found: object, asked: set[str]) -> tuple[T, ...]:
    assert hasattr(found, "__iter__")
    return tuple(each for each in found if each is not None and each.module in asked)


class _NameLookup:
    """Finds the declaration that a name means in a file: its own, else one of a module that it
    uses, else any.
    """

    def __init__(self, scopes: Sequence[Scope]) -> None:
        self.modules = {scope.unit.key: scope.unit.name for scope in scopes}

    def named(self, found: Mapping[_Key, V], scope: Scope) -> dict[str, V]:
        """The declarations by the names that they have in a file."""

        def far(key: _Key) -> int:
            own, used = key[0] == scope.unit.key, self.modules[key[0]] in scope.modules
            return 0 if own else 1 if used else 2

        names: dict[str, V] = {}
        for key in sorted(found, key=far):
            names.setdefault(key[1], found[key])
        return names


def _right(names: Mapping[str, V | None]) -> dict[str, V]:
    return {name: value for name, value in names.items() if value is not None}


def _rules_seen(scope: Scope, scopes: Sequence[Scope]) -> Mapping[str, str]:
    """The rules that a file may name: its own, then those of the modules that it sees."""
    found: dict[str, str] = {}
    for other in sorted(scopes, key=lambda each: each.unit.key != scope.unit.key):
        if other.unit.key != scope.unit.key and other.unit.name not in scope.modules - {""}:
            continue
        for node in other.unit.file.declarations:
            if isinstance(node, nodes.Invariant):
                module, name = other.unit.name, node.name.text
                found.setdefault(name, f"{module}.{name}" if module else name)
    return found


def _refuse_doubles(scopes: Sequence[Scope], findings: Findings) -> None:
    """Report two declarations of one kind and name."""
    kinds = (nodes.Mesh, nodes.Dims, nodes.Layout, nodes.Equivalence, nodes.Replay)
    seen: dict[tuple[str, str, str], tuple[Source, Span]] = {}
    for scope in scopes:
        for node in scope.unit.file.declarations:
            if isinstance(node, kinds):
                what, word = nodes.keyword(node), node.name
                name, span = word.text, word.span
            elif isinstance(node, nodes.Test):
                what, name, span = f"test of {scope.unit.key}", node.title.value, node.title.span
            else:
                continue
            place = (scope.source, span)
            first = seen.setdefault((scope.unit.name, what, name), place)
            if first is not place:
                there = Related(first[1], "the other one", first[0])
                message = f"two of one kind are called `{name}`"
                findings.add("TS0104", message, place, related=(there,))
