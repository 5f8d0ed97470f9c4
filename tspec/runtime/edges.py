"""The interface between sources of events and state, and their sinks.

A *source* is a live job, or a recorded trace that is replayed. A *sink* is a recorder or generated hooks, and is
notified of every edge. Sinks know nothing of torch's hooks and sources nothing of rules, so the same hooks run
live and over a trace.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from tspec.runtime.transfers import Transfer
from tspec.values import Context as Context
from tspec.values import Datum
from tspec.values import Location as Location
from tspec.values import LoopSpan as LoopSpan
from tspec.values import Missing as Missing
from tspec.values import Ref as Ref


class UnresolvedRef:
    """A subject whose name is not known yet: a weight before its model is found."""

    __slots__ = ("_ask",)

    def __init__(self, ask: Callable[[], Ref | None]) -> None:
        self._ask = ask

    def named(self) -> Ref | Missing:
        """The subject, once it is known."""
        found = self._ask()
        return Missing.NOT_RECORDED if found is None else found


@dataclass(slots=True, eq=False)
class WatchedCall:
    """One watched call. `fields` holds declared fields: argument fields from the begin, result fields from the end.

    A tensor among the values is an opaque handle whose features `StateSource.features` reads.
    Values else are Missing, Unnamed, bool, int, float, str, Ref, tuple, frozenset or a dict of these.
    """

    id: int
    parent: WatchedCall | None
    event: str
    callable: str
    begin: int
    """The instant at which it began: each call has its own. 0 for a call that sinks only count."""
    context: Context
    fields: dict[str, Datum] = field(default_factory=dict)
    end: int | None = None
    error: str | None = None
    location: Location | None = None
    """The line that made the call."""


class StateSource(Protocol):
    """The state that a sink may read at an edge.

    All values are as of that edge, and read in batches.
    """

    @property
    def rank(self) -> int:
        """This process's rank."""

    @property
    def world(self) -> int:
        """The number of ranks of the job."""

    @property
    def version(self) -> Hashable:
        """Equal at two instants only if no group of ranks changed between them, for any subject that
        lasts, and no field of `tspec.builtin.structure.BUILT`.
        """

    @property
    def seq(self) -> int:
        """The number of this instant."""

    @property
    def context(self) -> Context:
        """Step, epoch, microbatch and phase."""

    @property
    def first_step(self) -> int | None:
        """The number of the step that opened first in this run; None if none has."""

    @property
    def in_empty_step(self) -> bool:
        """Nothing was trained in the step that is open, after a step that trained.

        If the run ends here, this step is no window.
        """

    @property
    def location(self) -> Location | None:
        """The line of the latest backward pass or update.

        At a boundary: that of the activity that ended the span.
        """

    def ambient(self, name: str) -> Datum:
        """Another context value: `loss`, `autocast.enabled`, `cuda.available`."""

    def subjects(self, kind: str) -> Sequence[str]:
        """Canonical names of all subjects of the kind, the oldest first."""

    def fields(self, kind: str, name: str) -> Mapping[str, Datum]:
        """One declared field of all subjects of the kind: subject -> value (tensors as handles)."""

    def features(
        self, tensors: Sequence[Datum], names: tuple[str, ...]
    ) -> Sequence[Mapping[str, Datum]]:
        """Features of many tensors at once, in as few device calls as there are dtypes.

        Missing handles give Missing for each feature.
        """

    @property
    def axes(self) -> Sequence[str]:
        """Names of all axes that the job has by now and that rules may name."""

    def groups(self) -> Mapping[str, tuple[int, ...]]:
        """This rank's group on each axis, also on those of its framework that no rule may name."""

    def ranks(self, axis: str) -> tuple[int, ...] | None:
        """This rank's group on the axis, itself included; None if the job has no such axis."""

    def born(self, kind: str) -> Mapping[str, int]:
        """The instants at which subjects of the kind were created.

        Empty if they are created when first seen.
        """

    @property
    def staggered(self) -> bool:
        """The job sends from rank to rank, as pipelines do: ranks open a step one after another."""

    @property
    def joined(self) -> bool:
        """This rank has no more batches; it only answers the collectives of the other ranks (`Join`)."""

    @property
    def transfer(self) -> Transfer | None:
        """The latest copy of values from a device that has not arrived; None if all have."""

    @property
    def past(self) -> Past | None:
        """Earlier instants; None for a source that keeps none."""


class Past(Protocol):
    """The parts of a recording beyond the present instant."""

    @property
    def last(self) -> Context:
        """The context of the last record before this instant. A window that closes here reads it."""

    @property
    def calls_return(self) -> bool:
        """Every call that begins returns within the recording."""

    @property
    def units(self) -> Mapping[tuple[str, str], tuple[int, int]]:
        """(kind, subject) -> (step, epoch) of the subject's first sample."""

    def first(self, kind: str, name: str) -> Mapping[str, Datum]:
        """A declared field of each subject, from the subject's first sample of that field."""

    def ever(self, kind: str) -> Sequence[str]:
        """All subjects of a kind that there ever were, in the order of their first samples."""

    def peers(self, rank: int, axis: str) -> tuple[int, ...]:
        """Another rank's group on an axis."""


class Sink(Protocol):
    """A listener of one rank that is notified of every edge, in order."""

    def begin(self, call: WatchedCall, source: StateSource) -> None:
        """A watched call begins."""

    def end(self, call: WatchedCall, source: StateSource) -> None:
        """A watched call returned (or raised: `call.error`)."""

    def boundary(self, span: LoopSpan, index: int, source: StateSource) -> None:
        """A span closes and the one numbered `index` opens; `source.context` is that after opening."""

    def finish(self, source: StateSource) -> None:
        """The run ended normally."""


@runtime_checkable
class ForkListener(Protocol):
    """A sink that continues in a fork of the process."""

    def forked(self, source: StateSource, worker: int | None) -> None:
        """This process is a fork: a rank of its own, or the loader's worker of that number."""


@runtime_checkable
class WaitListener(Protocol):
    """A sink that has something to do while the process waits for another rank."""

    def waits(self, source: StateSource) -> None:
        """The step is done, and the process is about to wait."""


@runtime_checkable
class CallCounter(Protocol):
    """A sink that only counts some calls, because it would read nothing of them."""

    @property
    def passable(self) -> Container[str]:
        """Events some of whose calls it may pass over."""

    def passes_over(self, call: WatchedCall, source: StateSource) -> bool:
        """True if the sink counted the call without fields. It is then not notified of the call's
        edges.
        """


@runtime_checkable
class StepSelector(Protocol):
    """A sink that leaves out some steps."""

    @property
    def watches(self) -> bool:
        """True if it takes the calls of the step that is open. It is notified of boundaries in any case."""


class SkipCall(Exception):
    """A sink raises it in `begin`: the call is not made, and ends without an error. It returns None."""
