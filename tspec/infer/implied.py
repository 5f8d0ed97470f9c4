"""Drops drafts that other drafts imply, as z3 decides it."""

from __future__ import annotations

from collections.abc import Sequence

from tspec.infer.drafts import Draft
from tspec.resolve.program.rules import Rule


def remove_implied(
    drafts: Sequence[tuple[Draft, Rule]],
) -> tuple[tuple[Draft, ...], tuple[tuple[Draft, str], ...]]:
    """The drafts that no other implies, and the others with the name of one that implies them."""
    from tspec.logic import removes_implied

    by_name = {rule.name: draft for draft, rule in drafts}
    kept, removed = removes_implied([rule for _, rule in drafts])
    return (
        tuple(by_name[rule.name] for rule in kept),
        tuple((by_name[rule.name], by.name) for rule, by in removed),
    )
