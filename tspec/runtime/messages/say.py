"""Messages of a job on standard error: one line each in a log, wrapped to the width of a terminal.

Control sequences that a terminal or a CI would obey are escaped. `tspec.printable` does the same
for commands; the runtime imports nothing of tspec.
"""

from __future__ import annotations

import logging
import shutil
import sys
import textwrap


def warn(message: str) -> None:
    """Log a diagnostic: something to know that is no finding.

    The handlers of the logger `tspec` get it as a warning. A job that has set none sees it on standard
    error, whatever its other loggers are set to.
    """
    logger = logging.getLogger("tspec")
    if logger.handlers and not logger.disabled:
        logger.warning("%s", message)
    else:
        say(message)


def say(message: str, *details: str) -> None:
    """Write `tspec: message`, on a terminal in lines as wide as it is; in a log as one line, for programs that read it.

    Each of the details follows on a line of its own, indented.
    """
    line = f"tspec: {visible(message)}"
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns
        line = textwrap.fill(
            line, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
        )
    sys.stderr.write("".join(f"{each}\n" for each in (line, *(f"  {visible(d)}" for d in details))))


def visible(text: str) -> str:
    """A text on one line, each character that cannot be printed as its escape.

    GitHub takes `##[` for a command anywhere in a line.
    """
    if not text.isprintable():
        text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
    return text.replace("##[", "#\\x23[")
