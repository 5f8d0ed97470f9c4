"""The summary at the end of the hooks' `with` block: the violated rules with the first finding of
each, and the number of decided instances.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tspec.reasons import VERDICTS
from tspec.runtime.messages.findings import FindingRecord, details_of
from tspec.runtime.results import RuleRecord


def added(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    """The counts of several ranks, added up."""
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return total


def summary(
    rules: Sequence[tuple[RuleRecord, Mapping[str, int], FindingRecord | None]],
) -> list[tuple[str, ...]]:
    """The lines about rules, each with lines of details. Given are the counts of each rule (instances by verdict,
    and `found`, the findings) and its first finding.
    """
    lines: list[tuple[str, ...]] = []
    held = violated = decided = total = tested = 0
    for declared, counts, first in rules:
        known = counts["holds"] + counts["violated"]
        if counts["found"]:
            line = (
                f"{declared.name} ({declared.file}:{declared.line}): violated in"
                f" {counts['violated']:,} of {_count(known, 'decided instance')}"
            )
            lines.append((line, *([] if first is None else details_of(first))))
        violated += bool(counts["violated"])
        held += bool(known and not counts["violated"])
        decided += known
        total += sum(counts[verdict] for verdict in VERDICTS)
        tested += sum(counts[verdict] for verdict in VERDICTS if verdict != "idle")
    said = "" if lines else "nothing found; " if tested else "nothing was checked; "
    return [
        *lines,
        (
            f"{said}{_count(len(rules), 'rule')}: {violated} violated, {held} held."
            f" {_count(total, 'instance')}, {decided:,} decided.",
        ),
    ]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
