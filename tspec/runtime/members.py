"""Operations on one value of each member of a group, used by generated joint decisions."""

from __future__ import annotations

from collections.abc import Sequence

from tspec.runtime.edges import Missing
from tspec.runtime.folds import fold_many
from tspec.runtime.series.history import Index, SubjectHistory, TimeFold
from tspec.runtime.values import ABSENT, NO_HISTORY, NOT_RECORDED
from tspec.values import Datum

Leaves = Sequence[Sequence[Datum] | None]
"""The leaves of each member; None for one that has not the instance."""
Pasts = Sequence[SubjectHistory | None]


def leaf(members: Leaves, place: int) -> list[Datum]:
    """One leaf of every member."""
    return [NOT_RECORDED if one is None else one[place] for one in members]


def constant(members: Leaves, value: Datum) -> list[Datum]:
    """The same value for every member."""
    return [value] * len(members)


def group_fold(members: Leaves, name: str, values: Sequence[Datum]) -> list[Datum]:
    """A fold over the group: one value, the same for every member."""
    result = fold_many(name, _masked(members, values))
    return [result] * len(values)


def transpose(members: Leaves, values: Sequence[Datum], places: Sequence[int]) -> list[Datum]:
    """For each member the list of x[k] of every member, k its place in the group's ranks."""
    known = _masked(members, values)
    return [tuple(_element(value, place) for value in known) for place in places]


def _masked(members: Leaves, values: Sequence[Datum]) -> list[Datum]:
    pairs = zip(members, values, strict=True)
    return [NOT_RECORDED if one is None else value for one, value in pairs]


def _element(value: Datum, place: int) -> Datum:
    if value.__class__ is Missing:
        return value
    if not isinstance(value, tuple):
        return NOT_RECORDED
    return value[place] if place < len(value) else ABSENT


def previous(pasts: Pasts, node: int, values: Sequence[Datum]) -> list[Datum]:
    """`previous(x)` on each member."""
    pairs = zip(pasts, values, strict=True)
    return [NO_HISTORY if past is None else past.previous(node, value) for past, value in pairs]


def first(pasts: Pasts, node: int, values: Sequence[Datum]) -> list[Datum]:
    """`first(x)` on each member."""
    pairs = zip(pasts, values, strict=True)
    return [NO_HISTORY if past is None else past.first(node, value) for past, value in pairs]


def first_on_rank(pasts: Pasts, node: int, values: Sequence[Datum]) -> list[Datum]:
    """`first(x)` of a call on each member: at the rule's first instance on that rank."""
    pairs = zip(pasts, values, strict=True)
    return [
        NO_HISTORY if past is None else past.first_on_rank(node, value) for past, value in pairs
    ]


def over(
    pasts: Pasts,
    indices: Sequence[Index | None],
    values: Sequence[Datum],
    fold: TimeFold,
) -> list[Datum]:
    """A fold over time on each member."""
    results: list[Datum] = []
    for past, index, value in zip(pasts, indices, values, strict=True):
        if past is None or index is None:
            results.append(NO_HISTORY)
            continue
        results.append(past.over(fold, index, value))
    return results
