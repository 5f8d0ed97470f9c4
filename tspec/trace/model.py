"""The records of a trace: calls, samples of state, and step boundaries, each at one instant of one
rank.

An *instant* is a number (`seq`) that grows along one rank (one stream). State is sampled at
instants at which it can change. The value of a field at an instant is the last sample at or before
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from tspec.values import Context as Context
from tspec.values import Location as Location
from tspec.values import LoopSpan as LoopSpan
from tspec.values import Missing as Missing
from tspec.values import Phase as Phase
from tspec.values import Ref as Ref


@dataclass(frozen=True, slots=True)
class Tensor:
    """The recorded features of one tensor; a feature that is None was not recorded.

    `norm`, `mean`, `std` (population), `min`, `max`, `sum` are float64 of the tensor's elements (NaN if any element is).
    `zeros` is the count of exact zeros, `numel` the number of elements, `digest` a signed 64-bit hash of dtype-independent
    logical content *and* its order: equal tensors have equal digests on every device.
    `object` tells Python objects apart within one rank's recording (for `is`), never across.
    """

    digest: int | None = None
    norm: float | None = None
    mean: float | None = None
    std: float | None = None
    min: float | None = None
    max: float | None = None
    sum: float | None = None
    finite: bool | None = None
    zeros: int | None = None
    numel: int | None = None
    absmax: float | None = None
    nans: int | None = None
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    device: str | None = None
    memory_format: str | None = None
    requires_grad: bool | None = None
    name: str | None = None
    object: int | None = None


Value = (
    Missing | bool | int | float | str | Tensor | Ref
    | tuple["Value", ...] | frozenset["Value"] | Mapping[str, "Value"]
)  # fmt: skip
"""Lists are tuples; sets are frozensets; dtypes, devices, classes and enumeration members are strings.

A class is a string of its dotted paths along the method resolution order, joined by one blank, most
derived first, so that `isinstance` is a look into it."""


@dataclass(frozen=True, slots=True)
class Begin:
    """A watched call begins. `fields` are those known from its arguments."""

    seq: int
    context: Context
    call: int
    """Number of this call, unique in the stream."""
    parent: int | None
    """The innermost watched call that encloses it on the same thread."""
    event: str
    """The event's name, or the callable's dotted path where rules name it bare."""
    callable: str
    fields: Mapping[str, Value]
    location: Location | None = None
    """The line that made the call; None where it was not recorded."""


@dataclass(frozen=True, slots=True)
class End:
    """A watched call returns (or raises: then `error` is the exception's class). Adds fields that need the result."""

    seq: int
    context: Context
    call: int
    fields: Mapping[str, Value]
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """Fields of one subject, as they are at this instant. Others keep their last sample.

    The first sample of a subject is its coming into being. `gone` says that the subject is no more.
    Ambient values are sampled too: kind "context", subject "", fields `loss`, `autocast.enabled`, ...
    Groups: kind "group", subject is the axis, field `ranks`: the tuple of this rank's peers, itself included.
    """

    seq: int
    context: Context
    kind: str
    subject: str
    fields: Mapping[str, Value]
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Boundary:
    """A span opens (and the one before it, of the same kind, closes at the same instant).

    `span` is step, microbatch or epoch; `index` the number of the one that opens. Context is that
    after opening.
    """

    seq: int
    context: Context
    span: LoopSpan
    index: int
    location: Location | None = None
    """The line of the latest backward pass or update, which ended the span before."""


@dataclass(frozen=True, slots=True)
class Finish:
    """The run ended normally: all open spans close at this instant, and the run's own window."""

    seq: int
    context: Context
    location: Location | None = None
    """The line of the latest backward pass or update."""
    empty_step: bool = False
    """Nothing was trained in the last step: it is no window."""


Record = Begin | End | Sample | Boundary | Finish


@dataclass(frozen=True, slots=True)
class Damage:
    """The first damaged batch of a file. Nothing from there on is read."""

    batch: int
    """The number of the batch. Batch 0 is the schema. Each later batch was flushed at once and
    mostly holds a step.
    """
    offset: int
    """The offset of the batch in the file, in bytes."""
    step: int | None
    """The step of its first record, or None if that cannot be read."""
    what: str
    """The fault."""


How = Literal["finished", "stopped", "limit", "cut off", "torn", "damaged"]
"""`finished`: the last record is the run's end. `stopped`: the recording was closed and the run did not
finish, as where the script raised. `limit`: the recording reached its size limit. `cut off`: the
process was killed between two batches, or still runs. `torn`: it was killed within a batch.
`damaged`: the file was changed after it was written.
"""


@dataclass(frozen=True, slots=True)
class Ending:
    """The ending of one process's recording. Only a `finished` one is the complete run."""

    how: How
    step: int | None = None
    """The step of the last record that is read; 0 is before the first step, None without a record."""
    torn: int = 0
    """Bytes at the end of the file that are no whole batch."""
    damage: Damage | None = None
    """The place at which reading ended, if the file is damaged."""

    @property
    def words(self) -> str:
        """The ending in words: `cut off, 1,234 bytes torn`."""
        if self.damage is not None:
            at = self.damage
            step = "" if at.step is None else f", step {at.step}"
            return f"damaged from batch {at.batch} on (byte {at.offset:,}{step}): {at.what}"
        if self.torn:
            return f"cut off, {self.torn:,} bytes torn"
        words = {"stopped": "no normal end", "limit": "ended at its size limit"}
        return words.get(self.how, self.how)


@dataclass(frozen=True, slots=True)
class Stream:
    """The records of one process, in order of `seq`."""

    rank: int
    records: tuple[Record, ...]
    ending: Ending | None = None
    """None of a stream that was made in memory."""
    worker: int | None = None
    """A data-loader worker of that rank: not a rank of its own."""

    @property
    def torn(self) -> int:
        """Bytes cut off at the tail, because the process was killed while it wrote them."""
        return 0 if self.ending is None else self.ending.torn


@dataclass(frozen=True, slots=True)
class Trace:
    """One job: a stream for each rank (and for workers)."""

    streams: tuple[Stream, ...]
    world: int
    """The number of ranks of the job. Ranks without a stream were not recorded."""
    meta: Mapping[str, str] = field(default_factory=dict)

    def stream(self, rank: int) -> Stream | None:
        """The stream of that rank, or None if it was not recorded."""
        return next((s for s in self.streams if s.rank == rank and s.worker is None), None)


def missing_ranks(recorded: Iterable[int], world: int) -> tuple[range, ...]:
    """The ranks of a job of `world` ranks that are not among the recorded ones, as few ranges."""
    held = sorted({rank for rank in recorded if 0 <= rank < world})
    edges = zip([-1, *held], [*held, world], strict=True)
    return tuple(range(low + 1, high) for low, high in edges if low + 1 < high)


MOST_UNRECORDED = 100
"""The number of ranks after the last recorded one that are members of groups. Further ones would be
unknown in the same way.
"""


def world_of_groups(recorded: Iterable[int], world: int) -> int:
    """The ranks of a job of `world` ranks that checks list in groups: `meta.json` may name very many."""
    return min(world, max(recorded, default=-1) + 1 + MOST_UNRECORDED)


def ranks_in_words(ranks: range) -> str:
    """`rank 3`, or `ranks 3-9`."""
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {ranks[0]}-{ranks[-1]}"
