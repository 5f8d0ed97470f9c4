"""Changes as a comment on a pull request: a short table, then what can be unfolded."""

from __future__ import annotations

from collections.abc import Iterator

from tspec.diff.changes import Change, Changes
from tspec.diff.witness import Witness
from tspec.diff.words import meaning, summary, title

MARKS = {
    "removed": "🔴", "loosened": "🔴", "incomparable": "🟠", "unknown": "🟠", "changed": "🟠",
    "tightened": "🟢", "added": "🟢", "renamed": "⚪", "draft accepted": "🟢", "equivalent": "⚪",
}  # fmt: skip
"""What a reviewer has to look at is seen before it is read."""


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


def _row(change: Change) -> str:
    shown = "<br>".join(_cell(_code(each.line)) for each in change.witnesses)
    shown = shown or _cell("; ".join(change.notes) or meaning(change))
    name = _cell(_code(title(change)))
    return f"| {MARKS[change.change]} | {name} | {change.change} | {shown} |"


def _details(change: Change) -> Iterator[str]:
    yield "<details>"
    yield f"<summary>{change.change}: <code>{_html(title(change))}</code></summary>"
    yield ""
    yield f"{meaning(change).capitalize()}."
    yield ""
    for part in change.parts:
        yield f"- {part.part}: **{part.change}**"
    for witness in change.witnesses:
        yield f"- {_said(witness)}"
    if change.parts or change.witnesses:
        yield ""
    yield "```diff"
    yield from _diff(change)
    yield "```"
    yield "</details>"
    yield ""


def _said(witness: Witness) -> str:
    given = ", ".join(_code(each) for each in witness.given)
    return (
        f"for example {_code(witness.line)}{f', where {given} is taken as given' if given else ''}"
    )


def _diff(change: Change) -> Iterator[str]:
    """Both texts as a patch of the whole declaration."""
    import difflib

    old = change.old.text.splitlines() if change.old else []
    new = change.new.text.splitlines() if change.new else []
    if change.old:
        yield f"--- {change.old.where}"
    if change.new:
        yield f"+++ {change.new.where}"
    for line in difflib.ndiff(old, new):
        if not line.startswith("?"):
            yield f"{line[0]}{line[2:]}".rstrip()


def _code(text: str) -> str:
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _html(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
