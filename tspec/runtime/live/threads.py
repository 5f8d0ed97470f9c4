"""What one thread of the job is in the middle of."""

from __future__ import annotations

import threading

from tspec.runtime.edges import Call

OURS = "tspec"
"""The name of threads that do tspec's own work."""


class Threads(threading.local):
    """The watched calls that are open on the current thread, and whether tspec itself is at work on it."""

    def __init__(self) -> None:
        self.stack: list[Call] = []
        """Open calls of events, the innermost last."""
        self.frames: list[tuple[int, frozenset[str]]] = []
        """First argument and roles of the functions that are open."""
        self.quiet = threading.current_thread().name == OURS
        """tspec computes something: its own calls of torch are nobody's business."""
        self.modules = 0
        """How many modules' forward passes are open."""
