"""What a job tells on standard error: one line each, with what a terminal or a CI would obey escaped.

`tspec.printable` does the same for commands; the runtime imports nothing of tspec.
"""

from __future__ import annotations

import sys


def say(message: str) -> None:
    """Write `tspec: message` as one line."""
    sys.stderr.write(f"tspec: {visible(message)}\n")


def visible(text: str) -> str:
    """A text on one line, each character that cannot be printed as its escape.

    GitHub takes `##[` for a command anywhere in a line.
    """
    if not text.isprintable():
        text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    return text.replace("##[", "#\\x23[")
