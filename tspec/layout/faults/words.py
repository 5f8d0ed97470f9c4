"""The words of a layout's faults: places, indices, and sample numbers for sizes without one."""

from __future__ import annotations

from collections.abc import Sequence

from tspec.diagnostics import Diagnostic
from tspec.resolve.program.sharding import (
    LayoutDeclaration,
    Placement,
)

MOST_RANKS = 100_000
"""The number of ranks that are searched for one that shows a fault; more would take seconds."""


def at(
    layout: LayoutDeclaration, place: Placement, code: str, message: str, hint: str
) -> Diagnostic:
    """A fault of a place."""
    return Diagnostic(code, message, place.span, layout.source, hint=hint)


def shown(place: Placement) -> str:
    """A place as messages name it."""
    return f'`{place.kind} "{place.pattern}"`'


def index_text(index: Sequence[int]) -> str:
    """`7`, or `(7, 0)` in several dimensions."""
    return str(index[0]) if len(index) == 1 else f"({', '.join(map(str, index))})"
