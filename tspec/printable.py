"""Displays texts of unknown origin: names in a trace, texts of a spec, messages of exceptions.


Such a text may hold control characters, which a terminal obeys; characters that turn the line around or
cannot be seen; ends of lines, which forge lines of a log; and lone surrogates, which no file can
hold. Each of them is written as its escape, such as `\\x1b`. Every output format uses one of these
functions. (`tspec.runtime` has its own `visible`, since it imports nothing of tspec.)
"""

from __future__ import annotations

import json
import re
from typing import Any

_COMMAND = re.compile(r"^([ ]*)::(?!:)|##\[", re.MULTILINE)


def visible(text: str) -> str:
    """A text on one line, each character that cannot be printed as its escape."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def lines(text: str) -> str:
    """Lines of a terminal or a log, each `visible`, none of them a command to a CI.

    GitHub obeys lines of a log that begin with `::`, and `##[` anywhere in a line.
    """
    shown = "\n".join(map(visible, text.split("\n")))
    return _COMMAND.sub(_no_command, shown)


def json_text(value: Any, indent: int | None = 2) -> str:
    """A value as JSON that UTF-8 can hold: other characters than printable ones are escaped.

    A lone surrogate, which readers of JSON refuse, is the text of its escape. No line is a command
    to a CI.
    """
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    shown = "".join(c if c.isprintable() or c == "\n" else _json_escape(c) for c in text)
    return shown.replace("##[", "#\\u0023[")


def fenced(text: str, language: str) -> str:
    """Lines as a block of code in Markdown, which nothing in them ends."""
    fence = "`" * max(3, longest_run(text) + 1)
    shown = "\n".join(map(visible, text.split("\n")))
    return f"{fence}{language}\n{shown}\n{fence}"


def longest_run(text: str) -> int:
    """The most backticks in a row."""
    return max((len(run) for run in re.findall("`+", text)), default=0)


def _json_escape(character: str) -> str:
    return f"\\\\u{ord(character):04x}" if _is_surrogate(character) else json.dumps(character)[1:-1]


def _is_surrogate(character: str) -> bool:
    return "\ud800" <= character <= "\udfff"


def _no_command(match: re.Match[str]) -> str:
    return "#\\x23[" if match.group() == "##[" else f"{match.group(1)}\\x3a:"
