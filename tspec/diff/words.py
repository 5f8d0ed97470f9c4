"""How changes are said, in the terminal and on a pull request."""

from __future__ import annotations

from collections import Counter

from tspec.diff.changes import KINDS, Change, Changes


def summary(found: Changes) -> str:
    """`1 loosened, 2 added; 12 unchanged hidden`."""
    counts: Counter[str] = Counter(each.change for each in found.changes)
    shown = ", ".join(f"{counts[kind]} {kind}" for kind in KINDS if counts[kind])
    hidden = f"{found.hidden} unchanged hidden" if found.hidden else ""
    return "; ".join(part for part in (shown, hidden) if part) or "nothing to compare"


def title(change: Change) -> str:
    """What changed: the name, of what is no rule with the word for it."""
    name = change.name if change.what == "rule" else f"{change.what} {change.name}"
    return f"{name} (was {change.old_name})" if change.old_name else name


def meaning(change: Change) -> str:
    """What the kind of change means, in one sentence."""
    return {
        "removed": "is no longer asked for",
        "loosened": "some of what was violated no longer is",
        "incomparable": "some of what was violated no longer is, and something else now is",
        "unknown": "it could not be decided which way this goes",
        "tightened": "all that was violated still is, and more",
        "added": "is new",
        "renamed": "says what it said under another name",
        "draft accepted": "was a draft and counts now",
        "equivalent": "is written otherwise and says the same",
        "changed": "is written otherwise",
    }[change.change]
