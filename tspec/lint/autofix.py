"""Applying fixes, round after round until none is left. Each round is proved to change no meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tspec.lint.edits import applied, compatible
from tspec.lint.finding import LintFinding
from tspec.lint.lint import lint
from tspec.lint.settings import Settings
from tspec.resolve.load import Loaded
from tspec.resolve.program.rules import Rule
from tspec.source import Source
from tspec.syntax.format import format_text

ROUNDS = 20
"""The largest number of rounds. A fix may uncover another finding, but no spec needs so many."""

Texts = Mapping[Path, str]
Load = Callable[[Texts], Loaded]


@dataclass(frozen=True, slots=True)
class FixedFiles:
    """The files that changed, each with its text before and after, the latter in canonical form.

    `left` are the findings that remain; `fixed` counts the findings that were removed.
    """

    changed: Mapping[Path, tuple[str, str]]
    left: tuple[LintFinding, ...]
    fixed: int


@dataclass(slots=True)
class _FixState:
    texts: dict[Path, str] = field(default_factory=dict)
    refused: set[tuple[str, str, str]] = field(default_factory=set)
    """Fixes that would change the meaning of a rule: path, code and message of their findings."""
    fixed: int = 0


def autofix(load: Load, settings: Settings, unsafe: bool = False) -> FixedFiles:
    """Apply safe fixes, or all, until nothing changes. `load` reads the files with given texts.

    A safe fix is not applied if the rule is not proved to keep its meaning.
    """
    loaded = load({})
    before = {Path(unit.source.path): unit.source.text for unit in loaded.units if unit.given}
    state = _FixState()
    findings = lint(loaded, settings)
    for _ in range(ROUNDS):
        chosen = _chosen(findings, unsafe, state)
        if not chosen:
            break
        attempt = {**state.texts, **_texts_after(chosen, loaded)}
        after = load(attempt)
        harmful = _harmful(chosen, loaded, after)
        if harmful:
            state.refused.update(map(_key, harmful))
            continue
        state.texts, loaded = attempt, after
        state.fixed += len(chosen)
        findings = lint(loaded, settings)
    changed = {
        path: (before[path], text)
        for path, text in ((path, _canonical(path, text)) for path, text in state.texts.items())
        if text != before[path]
    }
    if changed:
        loaded = load({path: after_ for path, (_, after_) in changed.items()})
        findings = lint(loaded, settings)
    return FixedFiles(changed, findings, state.fixed)


def _canonical(path: Path, text: str) -> str:
    return format_text(Source(str(path), text))


def _key(finding: LintFinding) -> tuple[str, str, str]:
    return (finding.diagnostic.source.path, finding.code, finding.diagnostic.message)


def _chosen(
    findings: Sequence[LintFinding], unsafe: bool, state: _FixState
) -> tuple[LintFinding, ...]:
    by_file: dict[str, list[LintFinding]] = {}
    for finding in findings:
        wanted = finding.fix is not None and (finding.fix.safe or unsafe)
        if wanted and _key(finding) not in state.refused:
            by_file.setdefault(finding.diagnostic.source.path, []).append(finding)
    return tuple(each for found in by_file.values() for each in compatible(found))


def _texts_after(chosen: Iterable[LintFinding], loaded: Loaded) -> dict[Path, str]:
    edits: dict[str, list[LintFinding]] = {}
    for finding in chosen:
        edits.setdefault(finding.diagnostic.source.path, []).append(finding)
    sources = {unit.source.path: unit.source for unit in loaded.units}
    return {
        Path(path): applied(
            sources[path].text, [e for f in found if f.fix is not None for e in f.fix.edits]
        )
        for path, found in edits.items()
    }


# --- fixes that would change a rule -------------------------------------------------------------


def _harmful(
    chosen: Sequence[LintFinding], before: Loaded, after: Loaded
) -> tuple[LintFinding, ...]:
    """The fixes after which a file has errors, or a rule is not proved to keep its meaning."""
    safe = [each for each in chosen if each.fix is not None and each.fix.safe]
    if after.program is None:
        broken = {each.source.path for each in after.diagnostics if each.severity == "error"}
        touching = tuple(each for each in chosen if each.diagnostic.source.path in broken)
        return touching or tuple(chosen)
    assert before.program is not None
    # An unsafe fix is meant to change its rule.
    excused = {each.invariant for each in chosen if each not in safe}
    changed = _changed(before.program.rules, after.program.rules) - excused
    if not changed:
        return ()
    return tuple(each for each in safe if not each.invariant or each.invariant in changed)


def _changed(before: Sequence[Rule], after: Sequence[Rule]) -> set[str]:
    """Names of rules that are gone, new, or not proved to mean the same."""
    old = {rule.qualified: rule for rule in before}
    new = {rule.qualified: rule for rule in after}
    found = set(old.keys() ^ new.keys())
    for name in old.keys() & new.keys():
        if old[name] != new[name] and not _same(old[name], new[name]):
            found.add(name)
    return found


def _same(old: Rule, new: Rule) -> bool:
    from tspec.logic import equivalent  # z3 is for rules that changed.

    return old.responses == new.responses and old.draft == new.draft and equivalent(old, new).yes
