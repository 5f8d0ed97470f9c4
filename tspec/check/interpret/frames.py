"""The frame in which an expression is read: a rank, an occurrence of the window, and the values of
variables.

Page: "Time" on what lies in a window, "Instances" on what an instance is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from tspec.check.interpret.timeline import Moment, Timeline, TimelineCall
from tspec.check.interpret.values import Datum
from tspec.check.verdicts import Instance
from tspec.resolve.program.rules import Duration
from tspec.trace.model import Location


@dataclass(frozen=True, slots=True, eq=False)
class Occurrence:
    """One window (or instant) on one rank. `close` is None where the recording cuts it off.

    An instant opens and closes at itself. `call` is the call that the window is of.
    """

    kind: Literal["before", "after", "during", "calls", "each"]
    open: Moment
    close: Moment | None
    call: TimelineCall | None = None
    span: Literal["step", "microbatch", "epoch", "run"] | None = None
    at: tuple[int, int] = (0, 0)
    """For spans; the place of a call is found with its subjects."""
    ended_at: Location | None = None
    """For spans: the line that ended it."""

    @property
    def location(self) -> Location | None:
        """The line of the script that it is at."""
        return self.ended_at if self.call is None else self.call.begin.location

    @property
    def instant(self) -> bool:
        """True if the window is an instant."""
        return self.kind in ("before", "after")

    def holds_call(self, line: Timeline, seq: int) -> bool:
        """A call that begins (or a last call that ends) at `seq` lies in it."""
        end = self.close.seq if self.close is not None else None
        if self.instant:
            return line.step_opening(self.open.seq) <= seq < self.open.seq
        if self.kind == "each":
            return self.open.seq <= seq and (end is None or seq < end)
        return self.open.seq < seq and (end is None or seq < end)

    def holds_sample(self, line: Timeline, seq: int) -> bool:
        """A subject of a passing kind that is first sampled at `seq` lies in it."""
        end = self.close.seq if self.close is not None else None
        if self.instant:
            return line.step_opening(self.open.seq) <= seq <= self.open.seq
        if self.kind == "each":
            return self.open.seq <= seq and (end is None or seq < end)
        return self.open.seq < seq and (end is None or seq <= end)


@dataclass(frozen=True, slots=True, eq=False)
class LocalInstance:
    """One choice of subjects at one occurrence of the window on one rank."""

    line: Timeline
    world: int
    window: Occurrence
    bindings: Mapping[str, Datum]

    def reading(self) -> LocalInstance:
        """The same, where a window that is cut off closes at the last record."""
        if self.window.close is not None:
            return self
        return replace(self, window=replace(self.window, close=self.line.last))


@dataclass(slots=True, eq=False)
class InstanceHistory:
    """All instances of one rule, as look-backs find them."""

    every: Duration | None = None
    of_subjects: dict[tuple[int, tuple[int, ...], tuple[str, ...]], list[GroupInstance]] = field(
        default_factory=dict
    )
    """(rank, the group's ranks, subjects) -> the instances there, in order of `at`."""
    first: dict[int, GroupInstance] = field(default_factory=dict)
    """rank -> the first instance of the rule there."""

    def up_to(self, rank: int, instance: GroupInstance) -> Sequence[GroupInstance]:
        """This instance and the earlier ones, on this rank, of the same ranks and subjects."""
        instances = self.of_subjects[rank, instance.key.ranks, instance.key.subjects]
        return instances[: instances.index(instance) + 1]


@dataclass(frozen=True, slots=True, eq=False)
class GroupInstance:
    """One instance: the local instance of each rank that has it, and the other ranks that should
    have it.
    """

    key: Instance
    locals: Mapping[int, LocalInstance]
    history: InstanceHistory
    no_group: str = ""
    """Why there is no group to fold over."""
    lacking: tuple[int, ...] = ()
    unknown: Mapping[int, str] = field(default_factory=dict)
    """Members for which it is unknown whether they lack the instance: rank -> reason."""

    @property
    def members(self) -> tuple[int, ...]:
        """The ranks that hold the subjects, in order."""
        return tuple(sorted({*self.locals, *self.lacking, *self.unknown}))


@dataclass(frozen=True, slots=True)
class EvaluationContext:
    """The place and time at which names are read. `start`: at the window's start. `first`: as first
    sampled.
    """

    local: LocalInstance
    instance: GroupInstance | None = None
    start: bool = False
    first: bool = False

    @property
    def moment(self) -> Moment | None:
        """The instant at which state is read. None if the recording cuts off the window's end."""
        return self.local.window.open if self.start else self.local.window.close

    def at_instance(self, instance: GroupInstance) -> EvaluationContext | None:
        """The same frame at another instance, on this rank; None if this rank has it not."""
        return self.on_rank(self.local.line.rank, instance)

    def on_rank(self, rank: int, instance: GroupInstance) -> EvaluationContext | None:
        """The same frame on another rank of an instance; None if that rank has it not."""
        local = instance.locals.get(rank)
        return None if local is None else EvaluationContext(local, instance, self.start, self.first)
