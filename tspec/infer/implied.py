"""Drafts that other drafts imply are dropped: asked of z3, which knows what the rules mean."""

from __future__ import annotations

from collections.abc import Sequence

from tspec.infer.drafts import Draft
from tspec.infer.emit import emit, name_all


def remove_implied(
    drafts: Sequence[Draft], uses: Sequence[str]
) -> tuple[tuple[Draft, ...], tuple[tuple[Draft, str], ...]]:
    """The drafts that say something of their own, and the others with the name of one that says it."""
    from tspec.logic import removes_implied
    from tspec.resolve import load_text

    names = name_all(drafts)
    by_name = {names[draft.key]: draft for draft in drafts}
    loaded = load_text(emit(drafts, "drafts", uses, ("run",)), name="drafts.tspec")
    if loaded.program is None:
        raise ValueError(f"a draft does not resolve: {loaded.diagnostics[0].message}")
    kept, removed = removes_implied(loaded.program.rules)
    return (
        tuple(by_name[rule.name] for rule in kept),
        tuple((by_name[rule.name], by.name) for rule, by in removed),
    )
