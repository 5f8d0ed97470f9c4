"""The spans of the clauses of a rule and of a test in their files."""

from __future__ import annotations

from dataclasses import dataclass

from tspec.source import NOWHERE, Span


@dataclass(frozen=True, slots=True)
class ClauseSpans:
    """The spans of an invariant and its clauses. None: the clause is not written."""

    whole: Span = NOWHERE
    subjects: tuple[Span, ...] = ()
    """The `for` clauses."""
    variables: tuple[Span, ...] = ()
    """The name in each `for` clause."""
    across: Span | None = None
    groups: tuple[Span, ...] = ()
    window: Span | None = None
    thinning: Span | None = None
    """`every ...` or `once` in the window."""
    when: Span | None = None
    condition: Span | None = None
    """The condition of `when`."""
    expect: Span | None = None
    claim: Span | None = None
    """The claim of `expect`."""
    otherwise: Span | None = None
    """`else` with its actions."""
    responses: tuple[Span, ...] = ()
    actions: tuple[Span, ...] = ()
    """The action's word in each response."""

    @property
    def clauses(self) -> tuple[Span, ...]:
        """All clauses that are written, in order."""
        single = (self.across, self.window, self.when, self.expect, self.otherwise)
        return (*self.subjects, *(each for each in single if each is not None))
