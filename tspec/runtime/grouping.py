"""The pending instances of ranks, put together: which entries of different ranks are one instance."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tspec.runtime.pending import PendingInstance, Ranks, Subjects, named
from tspec.runtime.results import RuleRecord
from tspec.runtime.windows import At


def connect_groups(entries: Sequence[PendingInstance], latest: dict[int, Ranks]) -> None:
    """Extend the groups of a rule over several axes to all ranks that are reached over any of them, from rank to rank.

    In a job a rank knows the groups that it is in itself, and no others. `latest`: the latest group
    of each rank, as that rank knows it; those of the entries are added.
    """
    grouped = [entry for entry in entries if not entry.no_group]
    latest.update((entry.rank, entry.group) for entry in grouped)
    connected: dict[int, Ranks] = {}
    for entry in grouped:
        if entry.rank not in connected:
            reached, waiting = set(entry.group), [*entry.group]
            while waiting:
                new = {*latest.get(waiting.pop(), ())} - reached
                reached |= new
                waiting += new
            connected |= dict.fromkeys(reached, tuple(sorted(reached)))
        entry.group = connected[entry.rank]


def split_idle(
    entries: Iterable[PendingInstance],
) -> tuple[list[PendingInstance], list[PendingInstance]]:
    """Windows that are idle for the same choices on every member, one each; everything else by instance."""
    found: dict[tuple[Ranks, At], list[PendingInstance]] = {}
    rest: list[PendingInstance] = []
    for entry in entries:
        if entry.kinds:
            found.setdefault((entry.group, entry.at), []).append(entry)
        else:
            rest.append(entry)
    alike = []
    for (group, _), members in found.items():
        if len(members) == len(group) and all(one.choices == members[0].choices for one in members):
            alike.append(members[0])
        else:
            rest += [one for entry in members for one in entry.instances()]
    return alike, rest


def number_calls(
    entries: Sequence[PendingInstance], groups: Mapping[tuple[int, int], Ranks]
) -> None:
    """Number the calls that are windows of a rule across ranks, by group and step."""
    of = {(entry.rank, entry.call, entry.wanted): entry.group for entry in entries}
    for entry in entries:
        count = 0
        for call in entry.earlier:
            other = of.get((entry.rank, call, entry.wanted)) or groups.get((entry.rank, call))
            count += other in (None, entry.group)
        entry.at = (entry.at[0], count)


def instances(
    declared: RuleRecord,
    entries: Sequence[PendingInstance],
    groups: Mapping[tuple[int, int], Ranks],
) -> list[list[PendingInstance]]:
    """Entries of one rule by instance, in order of place; of `once` the first for each choice.

    `groups`: (rank, call) -> the ranks of the call's group.
    """
    if declared.kind == "calls" and declared.across:
        number_calls(entries, groups)
    found: dict[tuple[Ranks, At, Subjects], dict[int, PendingInstance]] = {}
    for entry in sorted(entries, key=lambda entry: entry.call):
        entry.subjects = named(entry.subjects, entry.at)
        found.setdefault((entry.group, entry.at, entry.subjects), {})[entry.rank] = entry
    if declared.once:
        first: dict[tuple[Ranks, Subjects], At] = {}
        for group, at, subjects in found:
            first[group, subjects] = min(at, first.get((group, subjects), at))
        found = {key: each for key, each in found.items() if first[key[0], key[2]] == key[1]}
    return [
        sorted(found[key].values(), key=lambda entry: entry.rank)
        for key in sorted(found, key=lambda key: key[1])
    ]
