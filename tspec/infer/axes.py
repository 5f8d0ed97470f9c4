"""Selects the axes that drafts name. Values that are the same along several axes are the same over
all ranks that these join.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tspec.resolve.program.declarations import GroupDeclaration

WORLD = "world"

Partition = frozenset[frozenset[int]]
"""The groups of several ranks that work together on an axis."""


def telling(
    groups: Sequence[GroupDeclaration], seen: Mapping[str, Mapping[int, Partition]]
) -> tuple[str, ...]:
    """The axes whose groups are not already joined by earlier axes, in the order of `groups`.

    `seen` has the groups of each axis in each run. The world comes last where a framework names its
    own groups, so that drafts use these. It comes first where groups come from wrappers and meshes:
    in a job with one group of all ranks, drafts use the world, which every job has.
    """
    names = [group.name for group in groups if group.name in seen]
    told = any(group.callables for group in groups if group.name in seen and group.name != WORLD)
    kept: list[str] = []
    for name in sorted(names, key=lambda each: (each == WORLD) == told):
        if any(
            ranks != joined(_within(ranks, (seen[other].get(run) for other in kept)))
            for run, ranks in seen[name].items()
        ):
            kept.append(name)
    return tuple(name for name in names if name in kept)


def joined(parts: Iterable[frozenset[int]]) -> Partition:
    """Merge overlapping parts into groups. A single rank is no group."""
    found: set[frozenset[int]] = set()
    for part in parts:
        met = {group for group in found if group & part}
        found = (found - met) | {part.union(*met)}
    return frozenset(group for group in found if len(group) > 1)


def _within(ranks: Partition, others: Iterable[Partition | None]) -> Iterable[frozenset[int]]:
    """The groups of other axes that are subsets of one of these."""
    return (
        part for other in others for part in other or () if any(part <= group for group in ranks)
    )
