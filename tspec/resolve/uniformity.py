"""Conditions that differ between the ranks of a group by their very text."""

from __future__ import annotations

from tspec.resolve import rules
from tspec.resolve.place import Place
from tspec.resolve.queries import of_each_member


def check_uniform(condition: rules.Expr, place: Place) -> None:
    """Refuse `rank == 0` under `across`: it cannot be the same on all members of a group."""
    if not place.across:
        return
    for read in of_each_member(condition):
        if read.name == "rank":
            place.refuse(
                "TS0154",
                "`rank` differs between the members of a group, which `across` compares",
                read.span,
                "leave out `across`, or fold over the group",
            )
