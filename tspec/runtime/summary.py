"""The summary at the end of the hooks' `with` block: the violated rules, and the number of decided
instances.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tspec.runtime.results import VERDICTS, RuleRecord


def added(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    """The counts of several ranks, added up."""
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return total


def summary(rules: Sequence[tuple[RuleRecord, Mapping[str, int]]]) -> list[str]:
    """The lines about rules with their counts: instances by verdict, and `found`, the findings."""
    lines = []
    held = violated = decided = total = tested = 0
    for declared, counts in rules:
        known = counts["holds"] + counts["violated"]
        if counts["found"]:
            lines.append(
                f"{declared.name} ({declared.file}:{declared.line}): violated in"
                f" {counts['violated']:,} of {_count(known, 'decided instance')}"
            )
        violated += bool(counts["violated"])
        held += bool(known and not counts["violated"])
        decided += known
        total += sum(counts[verdict] for verdict in VERDICTS)
        tested += sum(counts[verdict] for verdict in VERDICTS if verdict != "idle")
    said = "" if lines else "nothing found; " if tested else "nothing was checked; "
    return [
        *lines,
        f"{said}{_count(len(rules), 'rule')}: {violated} violated, {held} held."
        f" {_count(total, 'instance')}, {decided:,} decided.",
    ]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
