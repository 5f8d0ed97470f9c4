"""The finding of a lint rule: its place, the problem there, and a fix if there is only one."""

from __future__ import annotations

from dataclasses import dataclass

from tspec.diagnostics import Diagnostic, Related
from tspec.resolve.program.rules import Rule
from tspec.source import Source, Span


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """A stretch of a file, and the text that takes its place."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class SuggestedFix:
    """Edits of one file that remove a finding.

    `safe`: no rule of the file changes its meaning. `what` describes the edits in a few words.
    """

    what: str
    edits: tuple[Edit, ...]
    safe: bool = True


@dataclass(frozen=True, slots=True)
class LintViolation:
    """A finding as a lint rule gives it; its code is the lint rule's.

    `message` is one sentence without a full stop, names in backticks; `hint` says what to do.
    `invariant` is the qualified name of the rule that it is about, or nothing.
    """

    message: str
    source: Source
    span: Span
    hint: str | None = None
    related: tuple[Related, ...] = ()
    fix: SuggestedFix | None = None
    invariant: str = ""


def about(
    rule: Rule,
    message: str,
    span: Span | None = None,
    hint: str | None = None,
    fix: SuggestedFix | None = None,
    related: tuple[Related, ...] = (),
) -> LintViolation:
    """A finding about one rule, at its name or at a place in it."""
    place = rule.span if span is None else span
    return LintViolation(message, rule.source, place, hint, related, fix, rule.qualified)


@dataclass(frozen=True, slots=True)
class LintFinding:
    """A diagnostic of a lint rule, the rule's name, and its fix."""

    diagnostic: Diagnostic
    name: str
    fix: SuggestedFix | None = None
    invariant: str = ""

    @property
    def code(self) -> str:
        """`TS04nn`."""
        return self.diagnostic.code

    @property
    def key(self) -> tuple[str, Span, str, str]:
        """The sort key of findings: file, place, code."""
        found = self.diagnostic
        return (found.source.path, found.span, found.code, found.message)
