"""Changes in words, for the terminal and a pull request."""

from __future__ import annotations

from collections import Counter

from tspec.diff.changes import KINDS, Changes, DeclarationChange


def summary(found: Changes) -> str:
    """`1 loosened, 2 added; 12 unchanged hidden`."""
    counts: Counter[str] = Counter(map(heading, found.changes))
    kinds = [
        *(kind for kind in KINDS if kind != "equivalent"),
        *SAME_VIOLATED.values(),
        "equivalent",
    ]
    shown = ", ".join(f"{counts[kind]} {kind}" for kind in kinds if counts[kind])
    hidden = f"{found.hidden} unchanged hidden" if found.hidden else ""
    return "; ".join(part for part in (shown, hidden) if part) or "nothing to compare"


SAME_VIOLATED = {
    ("draft", "withdrawn"): "made a draft",
    ("action", "stricter"): "stricter action",
    ("action", "milder"): "milder action",
    ("action", "changed"): "other action",
}
"""Headings of rules that are violated in the same cases but act differently, by the part that
changed.
"""


def heading(change: DeclarationChange) -> str:
    """The change in a few words: `loosened`, `milder action`."""
    changed = {(part.part, part.change) for part in change.parts}
    if change.change != "equivalent":
        return change.change
    return next((said for part, said in SAME_VIOLATED.items() if part in changed), "equivalent")


def _action(change: DeclarationChange) -> str:
    """The change of the action: `stricter`, `milder` or `changed`; empty if it is unchanged."""
    return next((part.change for part in change.parts if part.part == "action"), "")


def title(change: DeclarationChange) -> str:
    """The name of the declaration, with its kind unless it is a rule."""
    name = change.name if change.what == "rule" else f"{change.what} {change.name}"
    return f"{name} (was {change.old_name})" if change.old_name else name


def meaning(change: DeclarationChange) -> str:
    """The meaning of a change in one sentence."""
    said = _of_kind(change)
    done = _action(change)
    if not done:
        return said
    rest = {"stricter": "more is", "milder": "less is", "changed": "something else is"}[done]
    return f"{said}; {rest} done about what is violated"


OF_EQUIVALENCES = {
    "loosened": "less is compared, or more is tolerated",
    "tightened": "more is compared, or less is tolerated",
    "incomparable": "less is compared or more is tolerated, and more is compared or less is tolerated",
    "equivalent": "is written differently and finds the same",
    "changed": "something else is compared",
}


def _of_kind(change: DeclarationChange) -> str:
    about_actions = {part.part for part in change.parts} <= {"action", "draft"}
    if change.change == "equivalent" and change.what == "rule" and about_actions:
        return "the same is violated"
    if change.what == "equivalence" and change.change in OF_EQUIVALENCES:
        return OF_EQUIVALENCES[change.change]
    return {
        "removed": "was removed",
        "loosened": "some of what was violated no longer is",
        "incomparable": "some of what was violated no longer is, and something else now is",
        "unknown": "it could not be decided which way this goes",
        "tightened": "all that was violated still is, and more",
        "added": "is new",
        "renamed": "has another name and means the same",
        "draft accepted": "was a draft and counts now",
        "equivalent": "is written differently and means the same",
        "changed": "is written differently",
    }[change.change]
