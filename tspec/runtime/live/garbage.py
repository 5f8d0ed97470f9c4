"""How often Python collects garbage while jobs are followed."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

SPACING = 3
"""Collections of the youngest generation are further apart by this factor."""


@contextmanager
def collected_less_often() -> Iterator[None]:
    """Collect after more new objects than Python does. A followed step makes thousands of objects,
    and most of them are freed at its end.

    A threshold that the script sets itself is kept.
    """
    before = gc.get_threshold()
    raised = (before[0] * SPACING, *before[1:])
    gc.set_threshold(*raised)
    try:
        yield
    finally:
        if gc.get_threshold() == raised:
            gc.set_threshold(*before)
