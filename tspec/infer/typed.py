"""Drafts that do not type are left out with their reason; the others are kept."""

from __future__ import annotations

from collections.abc import Sequence

from tspec.infer.candidates import resolve_each
from tspec.infer.drafts import Draft, Dropped, does_not_type
from tspec.infer.emit import block, name_all
from tspec.resolve.program.rules import Rule


def keep_typed(
    drafts: Sequence[Draft], uses: Sequence[str]
) -> tuple[tuple[tuple[Draft, Rule], ...], tuple[Dropped, ...]]:
    """The drafts that type, each with its rule, and the others with their diagnostics."""
    names = name_all(drafts)
    by_name = {names[draft.key]: draft for draft in drafts}
    blocks = {name: block(name, draft, ("run",)) for name, draft in by_name.items()}
    rules, problems = resolve_each(blocks, uses)
    dropped = tuple(
        Dropped(draft.claim, does_not_type(problems[name]), draft.held, draft.broken)
        for name, draft in by_name.items()
        if name in problems
    )
    return tuple((by_name[rule.name], rule) for rule in rules), dropped
