"""The changes between two sets of rules, as values: one for each rule or other declaration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from tspec.diff.witness.witness import Witness

ChangeKind = Literal[
    "removed", "loosened", "incomparable", "unknown", "tightened", "added", "renamed",
    "draft accepted", "equivalent", "changed",
]  # fmt: skip
"""In a reviewer's order. `changed` is for declarations other than rules, also of equivalences that go no certain way."""

KINDS: Sequence[str] = get_args(ChangeKind)

PartName = Literal[
    "subjects", "group", "window", "thinning", "when", "expect", "action", "draft", "vocabulary",
    "place", "replicas", "mesh", "sizes",
    "layout", "reference", "candidate", "sweep", "require", "equal when", "cover", "run", "input",
    "compare", "within", "store", "localize",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class DeclarationText:
    """A declaration as it is written: canonical text, and where it stands."""

    text: str
    file: str
    line: int

    @property
    def where(self) -> str:
        """`rules/a.tspec:12`."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class ChangedPart:
    """One changed part of a declaration, and the direction of that change alone.

    `change` is a relation, or `stricter`, `milder`, `changed` for actions, `accepted`, `withdrawn`
    for drafts, `added`, `removed` for places, `loosened`, `tightened`, `changed` for clauses of
    equivalences. A text is empty if that side has none.
    """

    part: PartName
    change: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class DeclarationChange:
    """One declaration that changed. `name` is the new name; for a removed declaration, the old name."""

    what: Literal["rule", "layout", "mesh", "dims", "equivalence", "replay", "test"]
    name: str
    change: ChangeKind
    old: DeclarationText | None
    new: DeclarationText | None
    old_name: str = ""
    """Its earlier name, if it was renamed."""
    parts: tuple[ChangedPart, ...] = ()
    witnesses: tuple[Witness, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def milder_action(self) -> bool:
        """True if the rule takes milder actions than before."""
        return any(part.part == "action" and part.change == "milder" for part in self.parts)


@dataclass(frozen=True, slots=True)
class Changes:
    """All changes, worst first, and the number of declarations that did not change."""

    changes: tuple[DeclarationChange, ...]
    hidden: int

    def of(self, kinds: Sequence[str]) -> tuple[DeclarationChange, ...]:
        """The changes of some kinds; `milder` are those that do less about a violation."""
        return tuple(
            each
            for each in self.changes
            if each.change in kinds or ("milder" in kinds and each.milder_action)
        )


def in_order(found: Sequence[DeclarationChange]) -> tuple[DeclarationChange, ...]:
    """Worst first, then by name."""
    return tuple(sorted(found, key=lambda each: (KINDS.index(each.change), each.what, each.name)))
