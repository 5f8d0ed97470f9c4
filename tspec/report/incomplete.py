"""Ranks whose recordings end early: the note about them, and the rules they leave undecided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from tspec.check.verdicts import Verdicts
from tspec.reasons import is_of_an_end
from tspec.trace.endings import EndsEarly
from tspec.trace.model import Ending, ranks_in_words

CODE = "TS0700"
"""Reasons why an instance is unknown."""


Cause = Literal["missing", "empty", "stopped", "limit", "cut off", "torn", "damaged"]
"""Why a recording is not the whole run; the page of `CODE` explains each."""


@dataclass(frozen=True, slots=True)
class Incomplete:
    """The recording of a rank that ends early, or ranks without one."""

    ends: EndsEarly
    undecided: Mapping[str, int]
    """Rule -> the number of instances with one of these ranks that are undecided because a
    recording ends. Rules without such instances are left out.
    """

    @property
    def cause(self) -> Cause:
        """Why it is not the whole run."""
        ending = self.ends.ending
        if ending is None:
            return "missing"
        if ending.step is None and ending.how != "damaged":
            return "empty"
        return "cut off" if ending.how == "finished" else ending.how

    @property
    def why(self) -> str:
        """The ending of the recording, as one clause without its rank."""
        return _why(self.cause, self.ends.ending or Ending("cut off"))

    @property
    def message(self) -> str:
        """The ending of the recording, and the number of undecided instances of each rule."""
        total = sum(self.undecided.values())
        rules = ", ".join(f"{rule} {number:,}" for rule, number in self.undecided.items())
        left = f"; undecided: {_count(total, 'instance')} ({rules})" if total else ""
        return f"{ranks_in_words(self.ends.ranks)}: {self.why}{left}"


def incomplete(verdicts: Verdicts) -> tuple[Incomplete, ...]:
    """The recordings that end early, by rank."""
    lost = list(_undecided(verdicts))
    return tuple(
        Incomplete(each, _summed((rule, n) for rule, ranks, n in lost if _touches(each, ranks)))
        for each in verdicts.ends_early
    )


def _touches(ends: EndsEarly, ranks: tuple[int, ...]) -> bool:
    return any(rank in ends.ranks for rank in ranks)


def _summed(counts: Iterable[tuple[str, int]]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for rule, number in counts:
        found[rule] += number
    return dict(found)


def undecided(verdicts: Verdicts) -> Mapping[str, int]:
    """Rule -> the number of its instances that are undecided because a recording ends. Each counts
    once.
    """
    return _summed((rule, number) for rule, _, number in _undecided(verdicts))


def _undecided(verdicts: Verdicts) -> Iterator[tuple[str, tuple[int, ...], int]]:
    """Rule, ranks and number of the instances that are unknown because a recording ended."""
    for found in verdicts.decided:
        if found.verdict == "unknown" and is_of_an_end(found.reason):
            yield found.instance.rule, found.instance.ranks, 1
    for count in verdicts.counted:
        if count.verdict == "unknown" and is_of_an_end(count.reason):
            yield count.rule, count.ranks, count.instances


_UNCHECKED = ", so nothing of it was checked"


def _why(cause: Cause, ending: Ending) -> str:
    where = f"in step {ending.step}" if ending.step else "before the first step"
    match cause:
        case "missing":
            return f"no recording (the file is missing){_UNCHECKED}"
        case "empty" if ending.torn:
            return f"empty recording ({ending.torn:,} bytes, but no whole batch){_UNCHECKED}"
        case "empty":
            return f"empty recording{_UNCHECKED}"
        case "damaged":
            return f"recording is {ending.words}"
        case "torn":
            torn = f"the last {ending.torn:,} bytes are no whole batch"
            return f"recording ends {where}, torn ({torn})"
        case "cut off":
            return f"recording ends {where} without an end record (killed, or still running)"
        case "limit":
            return f"recording ends {where} at its size limit"
        case "stopped":
            return f"recording ends {where} before the run does (the script failed, or recording stopped)"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
