"""A situation: what is read in one occurrence of a window, for one choice of subjects and group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tspec.logic.questions import Answer
from tspec.logic.values import Something, Thing
from tspec.resolve.program.rules import Claim, Expr
from tspec.trace.model import Missing

Side = Literal["old", "new"]
Known = bool | int | float | str | Thing | Missing | Something
"""What a read is worth; Missing where it has no value."""


@dataclass(frozen=True, slots=True)
class Read:
    """One read of a situation: `start` of the window or its end, which member, whose rule's.

    `side` is None where both rules read the same.
    """

    expr: Expr
    start: bool = False
    member: int = 0
    side: Side | None = None


@dataclass(frozen=True, slots=True)
class Situation:
    """What is read in one occurrence. `claims`: what claims that are no conditions come to."""

    reads: Mapping[Read, Known]
    claims: Mapping[Claim, bool | None]
    members: int
    returns: tuple[bool, ...]
    """For each member, whether the window has an end: a call that returns."""


@dataclass(frozen=True, slots=True)
class Difference:
    """Whether a situation is violated for one rule and not for the other; `no` is proved."""

    answer: Answer
    situation: Situation | None = None
