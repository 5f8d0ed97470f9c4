"""The diagnostics of one load, over all of its files."""

from __future__ import annotations

from collections.abc import Iterable

from tspec.diagnostics import Diagnostic, Related, Severity, in_order
from tspec.source import Source, Span


class Findings:
    """Collects diagnostics. Each load has its own."""

    def __init__(self) -> None:
        self._found: list[Diagnostic] = []

    def add(
        self,
        code: str,
        message: str,
        place: tuple[Source, Span],
        *,
        hint: str | None = None,
        related: tuple[Related, ...] = (),
        severity: Severity = "error",
    ) -> None:
        """Add a diagnostic at a place of a file."""
        source, span = place
        self._found.append(Diagnostic(code, message, span, source, related, hint, severity))

    def extend(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Add diagnostics of another room, such as the parser's."""
        self._found.extend(diagnostics)

    @property
    def failed(self) -> bool:
        """True if a finding is an error."""
        return any(found.severity == "error" for found in self._found)

    def all(self) -> tuple[Diagnostic, ...]:
        """The diagnostics by file and place, without duplicates."""
        return in_order(self._found)

    def unordered(self) -> tuple[Diagnostic, ...]:
        """The diagnostics in order of addition."""
        return tuple(self._found)
