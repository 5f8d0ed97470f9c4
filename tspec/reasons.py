"""The verdicts on instances, and the reasons why an instance is idle, unknown or violated without its
claim, as text that every executor gives.

A reason is text because findings, reports and a database hold text. Its words are defined only
here, and so is the way to read them. The reason why a value is missing is `tspec.values.Missing`.
"""

from __future__ import annotations

import re
from typing import Literal

Verdict = Literal["holds", "violated", "idle", "unknown"]
VERDICTS: tuple[Verdict, ...] = ("holds", "violated", "idle", "unknown")

CUT_OFF = "cut off"
"""The recording ends within the window."""
ONE_HOLDER = "one holder"
"""One rank alone of the group has the subjects."""
DIFFER = "members differ on when"
"""A violation that is found before the claim is evaluated. It shows no values."""

DIED = "died"
LACKS = "lacks it"
NO_WINDOW = "has no such window"

_NO_GROUP = "no group "
_OF_AN_END = re.compile(rf"{CUT_OFF}|rank \d+ {DIED}")


def of_rank(rank: int | str, what: str) -> str:
    """The reason about a member of the group: `DIED`, `LACKS` or `NO_WINDOW`."""
    return f"rank {rank} {what}"


def no_group(names: str) -> str:
    """The axes and fields of `across` give the rank no other member."""
    return f"{_NO_GROUP}{names}"


def is_no_group(reason: str) -> bool:
    return reason.startswith(_NO_GROUP)


def is_of_an_end(reason: str) -> bool:
    """A recording ended before the instance was decided."""
    return _OF_AN_END.fullmatch(reason) is not None


def is_of_absence(reason: str) -> bool:
    """True if a member of the group lacks the instance, so that the rule's claim was not evaluated."""
    return reason.endswith(LACKS)


def is_of_a_rank(reason: str) -> bool:
    """True if the reason is about one member of the group."""
    return reason.startswith("rank ")
