"""The parts of a generated module, and an edge as its hook functions see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tspec.runtime.calls.call import CallRecord, Kept, Pattern
from tspec.runtime.calls.log import Retention
from tspec.runtime.columns import Want
from tspec.runtime.given import CompiledFor
from tspec.runtime.instant import StateInstant
from tspec.runtime.joint import JointDecision
from tspec.runtime.results import RuleRecord
from tspec.runtime.series.history import Index
from tspec.runtime.windows import At, CallPosition


class Edge:
    """One edge as hooks see it: the instant, and the call or span that begins or ends."""

    __slots__ = (
        "begun",
        "call",
        "index",
        "microbatches",
        "next",
        "now",
        "opened",
        "places",
        "span",
    )

    def __init__(self, now: StateInstant, call: CallRecord | None = None) -> None:
        self.now = now
        self.call = call
        self.places: dict[int, CallPosition] = {}
        self.begun: Edge | None = None
        """At the end of a call, its begin."""
        self.microbatches = 0
        self.next: StateInstant | None = None
        """At a boundary, the instant for windows that open there."""
        self.opened: OpenSpan | None = None
        """The span that closes."""
        self.span = ""
        self.index = 0

    @property
    def rank(self) -> int:
        """The rank whose edge it is."""
        return self.now.source.rank


@dataclass(frozen=True, slots=True)
class OpenSpan:
    """A span that is open: its number, where it opened, and the places of its window: `at`, and `unit` for `over`."""

    index: int
    was: StateInstant
    at: At
    unit: Index


@dataclass(frozen=True, slots=True)
class Unopened:
    """The fields kept of an event's calls while none of some rules has a window open."""

    rules: tuple[int, ...]
    kept: Kept
    inside: Kept | None = None
    """Those of calls that another call of the event encloses, if fewer."""
    alone: Kept | None = None
    """Those in a job of one rank, if fewer."""


@dataclass(frozen=True, slots=True)
class GeneratedModule:
    """A generated module: its rules and its hook functions."""

    rules: tuple[RuleRecord, ...]
    functions: tuple[Callable[..., None], ...]
    joints: Mapping[int, JointDecision]
    begins: Mapping[str, Callable[..., None]]
    ends: Mapping[str, Callable[..., None]]
    spans: Mapping[str, Callable[..., None]]
    passes: Mapping[str, Callable[..., bool]]
    """Event -> a function that counts a call without reading it; false if a rule reads the call."""
    kept: Mapping[str, Kept]
    logged: frozenset[str]
    inside: Mapping[str, Kept] = field(default_factory=dict)
    """Fields kept of calls that another call of the event encloses, if fewer."""
    alone: Mapping[str, Kept] = field(default_factory=dict)
    """Fields kept of calls in a job of one rank, if fewer."""
    unopened: Mapping[str, Unopened] = field(default_factory=dict)
    """Fields kept of calls while some rules have no window open, if fewer."""
    calls: Mapping[str, Sequence[tuple[int, Pattern]]] = field(default_factory=dict)
    """Event -> the rules whose windows are its calls, from begin to end."""
    passing: tuple[Want, ...] = ()
    """Columns of batches and messages that rules read."""
    firsts: tuple[Want, ...] = ()
    """Columns whose first sample rules read."""
    kinds: tuple[str, ...] = ()
    """Kinds of persistent subjects of rules across ranks."""
    deferred: Mapping[str, Sequence[Pattern]] = field(default_factory=dict)
    """Event -> the patterns of the windows that its calls are, where nothing is read when a call begins."""
    retention: Mapping[str, Retention] = field(default_factory=dict)
    """Event -> the fields kept of its calls for windows that may outlast a step."""
    given: CompiledFor = field(default_factory=CompiledFor)
    """The values of the job that the rules were compiled for."""
