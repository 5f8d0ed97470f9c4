"""Sizes in bytes, as people write them: `500MB`, `2GB`, `1.5GiB`."""

from __future__ import annotations

import re

_WRITTEN = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s*([kmgt]?i?b)", re.IGNORECASE)
_UNITS = {
    "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
    "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
}  # fmt: skip
_SHOWN = (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3))
LEAST = 100_000
"""Bytes. A recording needs some for its beginning and end alone."""


def size_of(text: str) -> int:
    """The bytes of a limit.

    Raises ValueError, in words for the user, if it is malformed or too small.
    """
    found = _WRITTEN.fullmatch(text.strip())
    if found is None or found[2].lower() not in _UNITS:
        raise ValueError(f"`{text}` is not a size such as 500MB, 2GB or 1.5GiB")
    size = int(float(found[1]) * _UNITS[found[2].lower()])
    if size < LEAST:
        raise ValueError(f"`{text}` is too small for a recording; the least is {in_words(LEAST)}")
    return size


def in_words(size: int) -> str:
    """`1.5 GB`, or `12 bytes`."""
    for unit, worth in _SHOWN:
        if size >= worth:
            return f"{size / worth:.1f} {unit}"
    return f"{size} bytes"
