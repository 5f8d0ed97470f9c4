"""What generated hooks say when their `with` block ends: which rules were violated, and how many instances were decided."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tspec.runtime.results import RuleRecord


def summary(
    rules: Sequence[tuple[RuleRecord, Mapping[str, int]]], found: Mapping[int, int]
) -> list[str]:
    """The lines about rules with their counts by verdict. `found` is rule number -> its findings."""
    lines = []
    held = violated = decided = total = 0
    for declared, counts in rules:
        known = counts["holds"] + counts["violated"]
        if found.get(declared.number):
            lines.append(
                f"{declared.name} ({declared.file}:{declared.line}): violated in"
                f" {counts['violated']:,} of {_count(known, 'decided instance')}"
            )
        violated += bool(counts["violated"])
        held += bool(known and not counts["violated"])
        decided += known
        total += sum(counts.values())
    said = "" if lines else "nothing found; " if total else "nothing was checked; "
    return [
        *lines,
        f"{said}{_count(len(rules), 'rule')}: {violated} violated, {held} held."
        f" {_count(total, 'instance')}, {decided:,} decided.",
    ]


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
