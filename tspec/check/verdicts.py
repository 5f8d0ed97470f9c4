"""The verdicts of a rule's instances: what every executor returns, comparable one by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tspec.reasons import Verdict, is_of_absence
from tspec.trace.endings import EndsEarly
from tspec.trace.model import Location


@dataclass(frozen=True, slots=True, order=True)
class Instance:
    """One choice of subjects x one group x one occurrence of the window.


    `ranks` is (rank,) without `across`, else the group's ranks. `at` is the window's place: (step, n) for
    calls and instants (the n-th matching outermost call that began in that step on that rank, from 0),
    (step, 0) for `each step`, (step, microbatch) for `each microbatch`, (epoch, 0), (0, 0) for the run.
    `subjects` are canonical names in the order of the `for` clauses; a call is `#n`, its place among the
    calls of its collection in the window (in the step, when the window is the call itself); an element
    of a list is its position.
    """

    rule: str
    ranks: tuple[int, ...]
    at: tuple[int, int]
    subjects: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict and why."""

    instance: Instance
    verdict: Verdict
    reason: str = field(default="", compare=False)
    """For unknown: what was missing (`absent`, `not recorded`, `no history yet`, `cut off`, `rank 1 died`)."""
    values: Mapping[str, str] = field(default_factory=dict, compare=False)
    """The values that the rule read, as text: expression -> value, for a violated instance."""
    step: int = field(default=0, compare=False)
    location: Location | None = field(default=None, compare=False)
    """For a violated instance, the line of the script that it points at, on its first rank."""
    held: int = field(default=0, compare=False)
    """For a violated instance of a running job: the last earlier step in which the rule held, 0 if
    none.
    """

    @property
    def of_absence(self) -> bool:
        """True if a member of the group lacks the instance, so that the rule's claim was not
        evaluated.
        """
        return self.verdict == "violated" and is_of_absence(self.reason)


@dataclass(frozen=True, slots=True)
class InstanceCount:
    """The number of instances of a rule with one verdict and reason, on some ranks."""

    rule: str
    ranks: tuple[int, ...]
    verdict: Verdict
    reason: str
    instances: int


@dataclass(frozen=True, slots=True)
class Verdicts:
    """All instances that a check decided.

    If only findings are asked for, `decided` leaves out the rules without violations, which may
    have millions of instances. `counted` then holds their number.
    """

    decided: tuple[Decision, ...]
    notes: tuple[str, ...] = ()
    """Notes for the report, such as an axis that the job does not have, or ranks that wait for each other."""
    counted: tuple[InstanceCount, ...] = ()
    """Instances that `decided` leaves out. Empty unless asked for."""
    ends_early: tuple[EndsEarly, ...] = ()
    """Ranks whose recordings end before the run does: later instances were not checked."""
    shards: Mapping[str, str] = field(default_factory=dict)
    """Parameter -> the rank's part of it, if it is sharded: `a shard of [16, 8] (Shard(0) over
    tp)`.
    """
    groups: Mapping[int, Mapping[str, tuple[int, ...]]] = field(default_factory=dict)
    """Rank -> axis -> the ranks of its group, in order."""
    places: Mapping[str, int] = field(default_factory=dict)
    """Subject -> its place in the model, if `decided` is in another order."""
    cut_off: frozenset[str] = frozenset()
    """Rules of which `decided` holds the first violations only: a running job writes no more."""
