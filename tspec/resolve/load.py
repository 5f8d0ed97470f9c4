"""Loads specs: from paths to a program of typed rules, or to diagnostics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tspec.config.settings import RuleOverride
from tspec.diagnostics import Diagnostic, Related
from tspec.resolve.expressions.environment import Environment, Refused
from tspec.resolve.expressions.lets import refused_lets
from tspec.resolve.expressions.lower import lower
from tspec.resolve.findings import Findings
from tspec.resolve.invariants.invariant import lower_invariant
from tspec.resolve.modules.files import Reader, Unit, users_last
from tspec.resolve.modules.versions import check_versions
from tspec.resolve.names.scope import LetKey, Scope, scopes
from tspec.resolve.names.vocabulary import gather
from tspec.resolve.others import lower_others
from tspec.resolve.program import rules
from tspec.resolve.program.declarations import bare_event
from tspec.resolve.program.walk import parts
from tspec.resolve.settings import settle
from tspec.source import Source, Span
from tspec.syntax import nodes

UNKNOWN_NAMES = frozenset(
    {"TS0106", "TS0110", "TS0120", "TS0121", "TS0122", "TS0123", "TS0124", "TS0125", "TS0190"}
)
"""Codes of unknown names, which may be due to a missing module."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The result of loading. `program` is None if a diagnostic is an error."""

    program: rules.Program | None
    diagnostics: tuple[Diagnostic, ...]
    units: tuple[Unit, ...] = ()
    """All files that were read, including those that are only used."""


def load(
    paths: Sequence[Path],
    *,
    project: Path | None = None,
    texts: Mapping[Path, str] | None = None,
    tests: bool = False,
    settings: Sequence[RuleOverride] = (),
) -> Loaded:
    """Read spec files and the modules that they use, and resolve them.

    A folder stands for all `.tspec` files in it; a path that does not exist may be a shipped pack
    (`specs/essentials`) or a module (`std.hygiene`). `project` is the folder that is searched for
    modules after the shipped ones. Its default is the nearest folder above a file that holds a
    pyproject.toml, a tspec.toml or a .git. `texts` are read instead of the files at those paths, as
    an editor has them. `settings` are a project's overrides of single rules. With `tests`, the
    `.test.tspec` files of a folder are read too. Never raises: errors are in the diagnostics.
    """
    findings = Findings()
    reader = Reader(project, findings, texts, tests=tests)
    units = reader.read([Path(path) for path in paths])
    return _resolve(units, findings, reader, settings)


def load_text(text: str, name: str = "<text>", *, project: Path | None = None) -> Loaded:
    """Resolve a spec that stands in no file. `name` is how diagnostics call it."""
    findings = Findings()
    reader = Reader(project, findings)
    return _resolve(reader.read_text(Source(name, text)), findings, reader)


def _resolve(
    units: tuple[Unit, ...],
    findings: Findings,
    reader: Reader,
    settings: Sequence[RuleOverride] = (),
) -> Loaded:
    units = _with_broken(units)
    vocabulary, _ = gather(users_last(units), findings)
    refused: set[LetKey] = set()
    by_unit = scopes(units, vocabulary, findings, refused)
    refused |= refused_lets(by_unit, findings)
    lowered: list[rules.Rule] = []
    only_used: list[rules.Rule] = []
    asked = {unit.key for unit in units if unit.asked}
    for unit in units:
        scope = by_unit[unit.key]
        _check_lets(scope, findings)
        found = _rules(scope, findings)
        if unit.key in asked:
            lowered += found
        else:
            only_used += found
    _refuse_doubles([by_unit[unit.key] for unit in units], findings)
    settled = settle(units, lowered, settings, reader, findings)
    versions = check_versions(units, findings)
    others = lower_others([by_unit[unit.key] for unit in units], findings)
    diagnostics = _without_consequences(findings.all(), units)
    if findings.failed:
        return Loaded(None, diagnostics, units)
    program = rules.Program(
        settled.kept,
        _with_bare(vocabulary, lowered),
        others.meshes,
        others.dims,
        others.layouts,
        others.equivalences,
        others.replays,
        others.tests,
        tuple(only_used),
        settled.off,
        versions,
    )
    return Loaded(program, diagnostics, units)


def _without_consequences(
    found: tuple[Diagnostic, ...], units: tuple[Unit, ...]
) -> tuple[Diagnostic, ...]:
    """Drop reports of unknown names in files that use a missing module, and of names that two files
    share because they are one module.
    """
    names = {unit.name for unit in units}
    lacking = {
        unit.source.path
        for unit in units
        if any(use.module.text not in names for use in unit.file.uses)
    }
    one_module = {_files(each) for each in found if each.code == "TS0105"}
    return tuple(
        each
        for each in found
        if (each.source.path not in lacking or each.code not in UNKNOWN_NAMES)
        and (each.code != "TS0104" or _files(each) not in one_module)
    )


def _files(found: Diagnostic) -> frozenset[str]:
    """The paths of a report's places."""
    return frozenset((found.source.path, *(r.source.path for r in found.related if r.source)))


def _with_broken(units: tuple[Unit, ...]) -> tuple[Unit, ...]:
    """Declarations with syntax errors in one file are not reported as unknown in another."""
    broken = frozenset().union(*(unit.broken for unit in units))
    return tuple(replace(unit, broken=broken) for unit in units)


def _rules(scope: Scope, findings: Findings) -> list[rules.Rule]:
    found = []
    for node in scope.unit.file.declarations:
        if isinstance(node, nodes.Invariant):
            rule = lower_invariant(node, scope, findings)
            if rule is not None:
                found.append(rule)
    return found


def _check_lets(scope: Scope, findings: Findings) -> None:
    """Check the value of each `let`, used or not."""
    env = Environment(scope, findings, lower, "let", {}, across=True)
    for node in scope.unit.file.declarations:
        if isinstance(node, nodes.Let) and (scope.unit.key, node.name.text) not in scope.refused:
            try:
                env.lower(node.value)
            except Refused:
                continue


def _refuse_doubles(scopes_: list[Scope], findings: Findings) -> None:
    """Report two rules of one module and name, in one file or two."""
    seen: dict[tuple[str, str], tuple[Source, Span]] = {}
    for scope in scopes_:
        for node in scope.unit.file.declarations:
            if not isinstance(node, nodes.Invariant):
                continue
            place = (scope.source, node.name.span)
            first = seen.setdefault((scope.unit.name, node.name.text), place)
            if first is not place:
                there = Related(first[1], "the other one", first[0])
                message = f"two rules are called `{node.name.text}`"
                findings.add("TS0104", message, place, related=(there,))


def _with_bare(vocabulary: rules.Vocabulary, found: list[rules.Rule]) -> rules.Vocabulary:
    """The vocabulary with the callables that rules name themselves, each as an event."""
    known = {event.name for event in vocabulary.events}
    bare: dict[str, rules.EventDeclaration] = {}
    for rule in found:
        for part in parts(rule):
            if isinstance(part, rules.EventPattern):
                for name in part.events:
                    if name not in known:
                        bare.setdefault(name, bare_event(name, vocabulary))
    return replace(vocabulary, events=vocabulary.events + tuple(bare.values()))
