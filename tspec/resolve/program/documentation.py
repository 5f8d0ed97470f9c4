"""A rule's `///`: its explanation, and its advice on where to look after a violation."""

from __future__ import annotations

HINT = "Look at: "
"""Begins the paragraph that says what to look at."""


def explanation(doc: str) -> str:
    """What the documentation says without its hint, on one line."""
    return " ".join(each for each in _paragraphs(doc) if not each.startswith(HINT))


def hint(doc: str) -> str:
    """What to look at, as the documentation says; empty where it says nothing."""
    return " ".join(each.removeprefix(HINT) for each in _paragraphs(doc) if each.startswith(HINT))


def _paragraphs(doc: str) -> list[str]:
    return [" ".join(paragraph.split()) for paragraph in doc.split("\n\n")]
