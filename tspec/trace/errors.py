"""The error of a folder that should hold a trace."""

from __future__ import annotations


class TraceError(Exception):
    """A trace that cannot be read or written; its text is for the user and needs no traceback."""
