"""What one load has to say: an owner for the findings of all of its files."""

from __future__ import annotations

from collections.abc import Iterable

from tspec.diagnostics import Diagnostic, Related, Severity, in_order
from tspec.source import Source, Span


class Findings:
    """Collects diagnostics; one object for each load, which ends with it."""

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
        """Note one finding at a place of a file."""
        source, span = place
        self._found.append(Diagnostic(code, message, span, source, related, hint, severity))

    def extend(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Note what another room found, such as the parser."""
        self._found.extend(diagnostics)

    @property
    def failed(self) -> bool:
        """Whether anything is an error."""
        return any(found.severity == "error" for found in self._found)

    def all(self) -> tuple[Diagnostic, ...]:
        """By file and place, each once."""
        return in_order(self._found)

    def unordered(self) -> tuple[Diagnostic, ...]:
        """As they were found."""
        return tuple(self._found)
