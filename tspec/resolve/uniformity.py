"""Conditions that differ between the ranks of a group by their very text."""

from __future__ import annotations

from tspec.resolve import rules
from tspec.resolve.place import Place
from tspec.resolve.walk import Part, children


def check_uniform(condition: rules.Expr, place: Place) -> None:
    """Refuse `rank == 0` under `across`: it cannot be the same on all members of a group."""
    if not place.across:
        return
    found = _rank(condition)
    if found is not None:
        place.refuse(
            "TS0154",
            "`rank` differs between the members of a group, which `across` compares",
            found.span,
            "leave out `across`, or fold over the group",
        )


def _rank(part: Part) -> rules.Ambient | None:
    if isinstance(part, rules.Ambient) and part.name == "rank":
        return part
    # A fold over the group takes one value from each member, which may well be its rank.
    if isinstance(part, rules.Fold) and part.scope == "group":
        return None
    for child in children(part):
        found = _rank(child)
        if found is not None:
            return found
    return None
