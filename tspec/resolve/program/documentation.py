"""A rule's `///`: what goes wrong, details such as exceptions, and advice on where to look after a violation."""

from __future__ import annotations

HINT = "Look at: "
"""Begins the paragraph with the hint."""


def explanation(doc: str) -> str:
    """The first paragraph, on one line: what goes wrong. Findings show it; `tspec explain RULE` shows all."""
    first = paragraphs(doc)[0]
    return "" if first.startswith(HINT) else first


def first_sentence(doc: str) -> str:
    """The first sentence of a documentation, on one line, with its full stop."""
    sentence, stop, _ = " ".join(doc.split()).partition(". ")
    return f"{sentence}." if stop else sentence


def hint(doc: str) -> str:
    """The hint of the documentation; empty if it has none."""
    return " ".join(each.removeprefix(HINT) for each in paragraphs(doc) if each.startswith(HINT))


def paragraphs(doc: str) -> list[str]:
    """The paragraphs, each on one line; one empty paragraph for an empty text."""
    return [" ".join(paragraph.split()) for paragraph in doc.split("\n\n")]
