"""What sets kinds of subjects apart."""

from __future__ import annotations

PASSING = frozenset(("batch", "message"))
"""Kinds of subjects that exist only for the step in which they were created."""
