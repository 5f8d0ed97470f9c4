"""Applies edits to a text. Edits that overlap are not applied together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tspec.lint.finding import Edit, LintFinding


def applied(text: str, edits: Iterable[Edit]) -> str:
    """The text with edits that do not overlap put in."""
    done = text
    for edit in sorted(set(edits), reverse=True):
        done = done[: edit.span.start] + edit.text + done[edit.span.end :]
    return done


def compatible(findings: Sequence[LintFinding]) -> tuple[LintFinding, ...]:
    """The findings of one file whose fixes do not overlap; the first have precedence.

    Edits that touch are left for another round too. The same edit twice is one.
    """
    taken: list[Edit] = []
    chosen = []
    for finding in findings:
        assert finding.fix is not None
        own = finding.fix.edits
        if all(edit in taken or not _meets(edit, taken) for edit in own):
            taken += own
            chosen.append(finding)
    return tuple(chosen)


def _meets(edit: Edit, taken: Iterable[Edit]) -> bool:
    return any(
        edit.span.start <= other.span.end and other.span.start <= edit.span.end for other in taken
    )
