"""A rule's `///`: its explanation, and its advice on where to look after a violation."""

from __future__ import annotations

HINT = "Look at: "
"""Begins the paragraph with the hint."""


def explanation(doc: str) -> str:
    """The documentation without its hint, on one line."""
    return " ".join(each for each in _paragraphs(doc) if not each.startswith(HINT))


def hint(doc: str) -> str:
    """The hint of the documentation; empty if it has none."""
    return " ".join(each.removeprefix(HINT) for each in _paragraphs(doc) if each.startswith(HINT))


def _paragraphs(doc: str) -> list[str]:
    return [" ".join(paragraph.split()) for paragraph in doc.split("\n\n")]
