"""How the demos show a command line."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

WIDTH = 80
"""Columns of the page."""


def typed(command: Sequence[str]) -> str:
    """The command line, folded as one would in a shell script when it is long."""
    lines, line = [], ""
    for word in map(shlex.quote, command):
        if line and len(line) + len(word) + 5 > WIDTH:
            lines.append(line)
            line = "   "
        line = f"{line} {word}" if line else word
    return " \\\n".join([*lines, line])
