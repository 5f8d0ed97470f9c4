"""A situation: the values read in one occurrence of a window, for one choice of subjects and group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from tspec.logic.questions import Answer
from tspec.logic.values import OpaqueValue, SubjectIdentity
from tspec.resolve.program.rules import Claim, Expr
from tspec.trace.model import Missing

Side = Literal["old", "new"]
Known = bool | int | float | str | SubjectIdentity | Missing | OpaqueValue
"""The value of a read; Missing if it has none."""


@dataclass(frozen=True, slots=True)
class SituationRead:
    """One read: at the `start` or end of the window, on which member, for which side's rule.

    `side` is None if both rules read the same value.
    """

    expr: Expr
    start: bool = False
    member: int = 0
    side: Side | None = None


@dataclass(frozen=True, slots=True)
class Situation:
    """The values of one occurrence. `claims`: the truth of claims that are not conditions."""

    reads: Mapping[SituationRead, Known]
    claims: Mapping[Claim, bool | None]
    members: int
    returns: tuple[bool, ...]
    """For each member: true if the window has an end. The window of a call has one if the call
    returns.
    """


@dataclass(frozen=True, slots=True)
class DifferenceAnswer:
    """The answer whether a situation violates one rule and not the other. `no` is proved."""

    answer: Answer
    situation: Situation | None = None
