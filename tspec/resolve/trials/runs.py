"""Clauses that equivalences and replays share: the length of a run, and words out of a list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tspec.diagnostics import did_you_mean
from tspec.resolve.names.reporter import Reporter
from tspec.resolve.program.trials import Length
from tspec.syntax import nodes


def lower_length(node: nodes.Quantity, reporter: Reporter) -> Length | None:
    """The length of a run in whole steps or epochs. None, with a diagnostic, for any other
    quantity.
    """
    if node.unit not in ("step", "epoch"):
        message = f"a run is some steps or epochs long, not {node.unit}s"
        reporter.report("TS0138", message, node)
        return None
    if not isinstance(node.amount, int) or node.amount < 1:
        reporter.report("TS0139", "a run is a whole number of steps long, from 1 on", node)
        return None
    return Length(node.amount, "step" if node.unit == "step" else "epoch")


def check_words(
    words: Sequence[nodes.Word], known: Sequence[str], what: str, reporter: Reporter
) -> None:
    """Report unknown words, and words that occur twice."""
    seen: set[str] = set()
    for word in words:
        if word.text not in known:
            hint = did_you_mean(word.text, known) or f"there are {listed(known)}"
            reporter.report("TS0186", f"`{word.text}` cannot be {what}", word, hint)
        elif word.text in seen:
            reporter.report("TS0104", f"`{word.text}` stands here twice", word)
        seen.add(word.text)


def listed(names: Mapping[str, object] | Sequence[str]) -> str:
    """Names as a hint lists them."""
    return ", ".join(f"`{name}`" for name in names)
