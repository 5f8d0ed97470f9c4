"""Writes values and names of a spec in generated Python, as literals and never as code."""

from __future__ import annotations

import math
import re


def literal(value: object) -> str:
    """A value as a Python literal. Raises TypeError for a value without one."""
    if isinstance(value, bool) or value is None:
        return repr(value)
    if isinstance(value, int):
        return repr(int(value))
    if isinstance(value, float):
        if math.isnan(value):
            return "NAN"
        if math.isinf(value):
            return "INF" if value > 0 else "-INF"
        return repr(float(value))
    if isinstance(value, str):
        return repr(str(value))
    if isinstance(value, tuple):
        items = ", ".join(literal(item) for item in value)
        return f"({items},)" if len(value) == 1 else f"({items})"
    raise TypeError(f"{type(value).__name__} has no literal in generated code")


def identifier(text: str) -> str:
    """A part of a name: letters, digits and `_` of a text, so that no text can be code."""
    return re.sub(r"[^0-9A-Za-z]+", "_", text).strip("_")[:60] or "rule"


def comment(text: str) -> str:
    """A text as one line of a comment or docstring: nothing in it ends the line or the string."""
    shown = "".join(c if c.isprintable() else " " for c in text)
    return shown.replace("\\", "/").replace('"', "'")
