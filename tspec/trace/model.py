"""What a trace says: calls, samples of state, and step boundaries, each at one instant of one rank.

An *instant* is a number (`seq`) that grows along one rank (one stream). State is sampled at instants
where it can change; the value of a field at an instant is what was last sampled at or before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal


class Missing(Enum):
    """Why a value is not there. Only the first is visible to `present`."""

    ABSENT = "absent"
    NOT_RECORDED = "not recorded"
    NO_HISTORY = "no history yet"


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
    shape: tuple[int, ...] | None = None
    dtype: str | None = None
    device: str | None = None
    memory_format: str | None = None
    requires_grad: bool | None = None
    name: str | None = None
    object: int | None = None


@dataclass(frozen=True, slots=True)
class Ref:
    """A value that is a subject: its kind and canonical name on the same rank."""

    kind: str
    name: str


Value = (
    Missing | bool | int | float | str | Tensor | Ref
    | tuple["Value", ...] | frozenset["Value"] | Mapping[str, "Value"]
)  # fmt: skip
"""Lists are tuples; sets are frozensets; dtypes, devices, classes and enumeration members are strings.

A class is a string of its dotted paths along the method resolution order, joined by one blank, most
derived first, so that `isinstance` is a look into it."""

Phase = Literal["train", "eval"]


@dataclass(frozen=True, slots=True)
class Context:
    """What is known at every instant."""

    step: int = 0
    epoch: int = 0
    microbatch: int = 0
    phase: Phase = "train"


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

    `span` is step, microbatch or epoch; `index` the number of the one that opens. Context is that after opening.
    """

    seq: int
    context: Context
    span: Literal["step", "microbatch", "epoch"]
    index: int


@dataclass(frozen=True, slots=True)
class Finish:
    """The run ended normally: all open spans close at this instant, and the run's own window."""

    seq: int
    context: Context


Record = Begin | End | Sample | Boundary | Finish


@dataclass(frozen=True, slots=True)
class Stream:
    """What one process recorded, in order of `seq`."""

    rank: int
    records: tuple[Record, ...]
    torn: int = 0
    """Bytes cut off at the tail, because the process was killed while it wrote them."""
    worker: int | None = None
    """A data-loader worker of that rank: not a rank of its own."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One job: a stream for each rank (and for workers)."""

    streams: tuple[Stream, ...]
    world: int
    """How many ranks the job had; ranks without a stream were not recorded."""
    meta: Mapping[str, str] = field(default_factory=dict)

    def stream(self, rank: int) -> Stream | None:
        """The stream of that rank, or None if it was not recorded."""
        return next((s for s in self.streams if s.rank == rank and s.worker is None), None)
