"""Changes as a comment on a pull request: a short table, then sections to unfold.

Names and texts of a spec are code spans, so that they are not read as markup by CommonMark or
GitHub's tables. The fence of a span is longer than any run of backticks in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tspec.diff.changes import Changes, DeclarationChange
from tspec.diff.formats.words import heading, meaning, summary, title
from tspec.diff.witness.witness import Witness
from tspec.printable import fenced, longest_run, visible

MARKS = {
    "removed": "🔴", "loosened": "🔴", "incomparable": "🟠", "unknown": "🟠", "changed": "🟠",
    "tightened": "🟢", "added": "🟢", "renamed": "⚪", "draft accepted": "🟢", "equivalent": "⚪",
    "milder action": "🔴", "other action": "🟠", "stricter action": "🟢",
    "made a draft": "🔴",
}  # fmt: skip
"""A mark for each kind of change, which shows a reviewer where to begin."""

_MARKUP = re.compile(r"[!-/:-@\[-`{-~]")
"""ASCII punctuation, which may be written as character references."""


def as_markdown(found: Changes) -> str:
    """The whole comment."""
    lines = [f"### Rules: {summary(found)}", ""]
    if found.changes:
        lines += ["| | rule | change | where the versions differ |", "|---|---|---|---|"]
        lines += [_row(each) for each in found.changes]
        lines.append("")
    for each in found.changes:
        lines += _details(each)
    return "\n".join(lines)


def _row(change: DeclarationChange) -> str:
    shown = "<br>".join(_cell(each.line) for each in change.witnesses)
    shown = shown or "<br>".join(map(_cell, change.notes)) or meaning(change)
    said = heading(change)
    return f"| {MARKS[said]} | {_cell(title(change))} | {said} | {shown} |"


def _details(change: DeclarationChange) -> Iterator[str]:
    yield "<details>"
    yield f"<summary>{heading(change)}: <code>{_html(title(change))}</code></summary>"
    yield ""
    yield f"{meaning(change).capitalize()}."
    yield ""
    for part in change.parts:
        yield f"- {part.part}: **{part.change}**"
    for witness in change.witnesses:
        yield f"- {_example(witness)}"
    if change.parts or change.witnesses:
        yield ""
    yield fenced("\n".join(_diff(change)), "diff")
    yield "</details>"
    yield ""


def _example(witness: Witness) -> str:
    given = ", ".join(_code(each) for each in witness.given)
    return (
        f"for example {_code(witness.line)}{f', where {given} is taken as given' if given else ''}"
    )


def _diff(change: DeclarationChange) -> Iterator[str]:
    """Both texts as a patch of the whole declaration."""
    import difflib

    old = change.old.text.split("\n") if change.old else []
    new = change.new.text.split("\n") if change.new else []
    if change.old:
        yield f"--- {change.old.where}"
    if change.new:
        yield f"+++ {change.new.where}"
    for line in difflib.ndiff(old, new):
        if not line.startswith("?"):
            yield f"{line[0]}{line[2:]}".rstrip()


def _code(text: str) -> str:
    """Code within a line. A blank keeps backticks at its ends apart from the fence."""
    text = visible(text)
    fence = "`" * (longest_run(text) + 1)
    blank = " " if text.startswith(("`", " ")) or text.endswith(("`", " ")) else ""
    return f"{fence}{blank}{text}{blank}{fence}" if text.strip() else f"<code>{text}</code>"


def _cell(text: str) -> str:
    """Code in a cell of a table, which a bar would end even within backticks."""
    return f"<code>{_text(text)}</code>" if "|" in text else _code(text)


def _text(text: str) -> str:
    """Text for a `code` element within a line, in which GitHub looks for neither users nor links."""
    return _MARKUP.sub(lambda sign: f"&#{ord(sign.group())};", visible(text))


def _html(text: str) -> str:
    """Text for a block of HTML, in which Markdown is not interpreted."""
    return visible(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
