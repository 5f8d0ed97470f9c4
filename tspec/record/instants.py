"""The instants at which state is sampled: those at which it can have changed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tspec.builtin.events import LIGHT, OTHER, EventRoles, roles_of
from tspec.builtin.kinds import PASSING
from tspec.record.calls import is_outermost
from tspec.record.samples import FULL, INITIAL, STATE, Samples, tensor, value_of
from tspec.runtime.edges import LoopSpan, Missing, StateSource, WatchedCall
from tspec.runtime.live.watch import WatchSpec
from tspec.runtime.transfers import arrived
from tspec.trace.model import Sample, Value

TENSORS: Mapping[str, tuple[str, ...]] = {
    "parameter": ("data", "grad", "main", "main_grad", "shard"),
    "buffer": ("data",),
    "state": ("data",),
    "generator": ("state",),
    "message": ("sent", "received", "read"),
}
"""Fields that hold a tensor."""

LIVE_ONLY: Mapping[str, tuple[str, ...]] = {
    "message": ("buffer",),
    "parameter": ("paired_data",),
}
"""Tensor fields that are not recorded: rules compare which object they hold, or whole tensors of two
instants, which only a running job knows.
"""

COMPUTING = re.compile(
    r"torch\.nn\.(functional\..+|.+\.forward)|torch\.utils\.checkpoint\.checkpoint"
    r"|megatron\.core\.transformer\.moe\.(moe_utils|token_dispatcher)\..+"
)
"""Functions that compute and change no state that lasts, and torch's layers: what these change is sampled after the
outermost forward pass.
"""

FIRST_CALLS = 2
"""The number of calls in a step of an event without roles that are sampled at both edges."""
INITIAL_STEPS = 3
"""The number of steps in which the extremes of parameters are recorded."""


class Instants:
    """Chooses what to sample at each edge."""

    def __init__(self, spec: WatchSpec, samples: Samples) -> None:
        self._samples = samples
        self._plain: dict[str, tuple[str, ...]] = {}
        self._tensors: dict[str, tuple[str, ...]] = {}
        for entity in spec.entities:
            held, live = TENSORS.get(entity.kind, ()), LIVE_ONLY.get(entity.kind, ())
            names = [field.name for field in entity.fields if field.name not in live]
            self._tensors[entity.kind] = tuple(name for name in names if name in held)
            self._plain[entity.kind] = tuple(name for name in names if name not in held)
        self._calls: Counter[str] = Counter()
        self._version: Any = None
        self._families = tuple(event.callables[0][:-1] for event in spec.events if event.family)
        self._light = light_events(spec)
        self._roles: dict[str, EventRoles] = {}

    # --- edges ---------------------------------------------------------------------------------------

    def at_begin(self, call: WatchedCall, source: StateSource) -> Iterable[Sample]:
        """Samples before a call."""
        match self._roles_of(call.event).before:
            case "forward":
                return self._before_forward(source) if is_outermost(call) else ()
            case "update":
                return self._before_update(source)
            case "backward":
                return self._before_backward(source)
            case "gradients":
                return self._gradients(source)
            case "everything":
                return self._everything(source)
            case "first calls":
                return self._everything(source) if self._is_first(call.event) else ()
            case "nothing":
                return ()

    def at_end(self, call: WatchedCall, source: StateSource) -> Iterable[Sample]:
        """Samples after a call."""
        match self._roles_of(call.event).after:
            case "forward":
                return self._after_forward(source) if is_outermost(call) else ()
            case "batches":
                return self._batches(source)
            case "update":
                return self._after_update(source)
            case "backward":
                return self._after_backward(source)
            case "gradients":
                return self._gradients(source)
            case "schedule":
                return self._after_schedule(source)
            case "everything":
                return self._everything(source)
            case "first calls":
                first = 0 < self._calls[call.event] <= FIRST_CALLS
                return self._everything(source) if first else ()
            case "nothing":
                return ()

    def _messages(self, source: StateSource) -> Iterator[Sample]:
        """Messages that were sent to this rank."""
        if source.subjects("message"):
            yield from self._plain_of(source, "message")
            yield from self._tensors_of(source, "message")

    def _after_forward(self, source: StateSource) -> Iterator[Sample]:
        yield from self._messages(source)
        yield from self._tensors_of(source, "generator")
        yield from self._tensors_of(source, "buffer")

    def _after_update(self, source: StateSource) -> Iterator[Sample]:
        yield from self._messages(source)
        yield from self._tensors_of(source, "parameter", ("data", "main"))
        yield from self._tensors_of(source, "state")

    def _after_schedule(self, source: StateSource) -> Iterator[Sample]:
        yield from self._plain_of(source, "param_group")
        yield from self._plain_of(source, "scheduler", ("last_epoch",))

    def _before_backward(self, source: StateSource) -> Iterator[Sample]:
        yield from self._messages(source)
        yield from self._plain_of(source, "module", ("training",))

    def _after_backward(self, source: StateSource) -> Iterator[Sample]:
        yield from self._loss(source)
        yield from self._gradients(source)

    def _loss(self, source: StateSource) -> Iterable[Sample]:
        """The latest loss."""
        loss = value_of(arrived(source.ambient("loss")))
        return self._samples.one(source, "context", "", {"loss": loss})

    def _gradients(self, source: StateSource) -> Iterator[Sample]:
        yield from self._plain_of(source, "parameter", ("grad_placements",))
        yield from self._tensors_of(source, "parameter", ("grad", "main_grad"))

    def at_boundary(self, span: LoopSpan, source: StateSource) -> Iterator[Sample]:
        """Samples where spans meet."""
        if span == "microbatch":
            return
        self._calls.clear()
        for kind in PASSING:
            self._samples.forget(source, kind)
        if span == "epoch":
            yield from self._plain_of(source, "module")
        if source.ambient("loss") is not Missing.NO_HISTORY:
            yield from self._loss(source)  # of a backward pass that is no call of `backward`
        yield from self._groups(source)
        yield from self._structure(source)
        yield from self._tensors_of(source, "parameter", ("data", "main"))
        for kind in ("buffer", "generator"):
            yield from self._tensors_of(source, kind)
        yield from self._plain_of(source, "scaler")

    def of_worker(self, source: StateSource) -> Iterator[Sample]:
        """The state of a loader's worker: the random generators as they begin."""
        return self._tensors_of(source, "generator")

    # --- samples -------------------------------------------------------------------------------------

    def _before_forward(self, source: StateSource) -> Iterator[Sample]:
        yield from self._messages(source)
        yield from self._new(source, "module")
        yield from self._new(source, "parameter")
        yield from self._new(source, "buffer")
        if self._samples.has_new(source, "optimizer"):
            for kind in ("optimizer", "param_group"):
                yield from self._plain_of(source, kind)
            yield from self._plain_of(source, "parameter", ("group",))
        yield from self._plain_of(source, "module", ("training", "called"))
        yield from self._tensors_of(source, "generator")

    def _before_update(self, source: StateSource) -> Iterator[Sample]:
        yield from self._structure(source)
        yield from self._tensors_of(source, "parameter")
        yield from self._plain_of(source, "scaler")

    def _structure(self, source: StateSource) -> Iterator[Sample]:
        """The subjects and their holders; all fields if a subject was built or replaced."""
        version = getattr(source, "version", None)
        if version is not None and version == self._version:
            yield from self._plain_of(source, "module", ("training", "called", "copied"))
            changing = (
                "requires_grad",
                "group",
                "projected",
                "interpolated",
                "updated_elsewhere",
                "copied",
                "averaged",
            )
            yield from self._plain_of(source, "parameter", changing)
            yield from self._plain_of(
                source, "optimizer", ("updates", "alone", "defaults", "attributes")
            )
            yield from self._plain_of(source, "param_group")
            yield from self._plain_of(source, "loader", ("trained_on",))
            return
        self._version = version
        for kind in ("module", "parameter", "buffer", "state", "optimizer"):
            yield from self._samples.gone(source, kind)
        yield from self._new(source, "module")
        yield from self._new(source, "state")  # a loaded state exists before the first update
        yield from self._plain_of(
            source,
            "module",
            ("training", "root", "called", "parameters", "next", "copied"),
        )
        for kind in (
            "parameter",
            "buffer",
            "optimizer",
            "param_group",
            "scheduler",
            "loader",
            "wrapper",
        ):
            yield from self._plain_of(source, kind)

    def _everything(self, source: StateSource) -> Iterator[Sample]:
        yield from self._structure(source)
        yield from self._plain_of(source, "module")
        for kind in ("parameter", "buffer", "state", "generator"):
            yield from self._tensors_of(source, kind)

    def _batches(self, source: StateSource) -> Iterator[Sample]:
        yield from self._new(source, "loader")
        fields = self._plain.get("batch", ())
        loaders = source.fields("batch", "loader") if "loader" in fields else {}
        tensors = source.fields("batch", "tensors")
        for subject in list(source.subjects("batch"))[-1:]:
            held = tensors.get(subject)
            rows = source.features(held if isinstance(held, tuple) else (), FULL)
            values: dict[str, Value] = {"tensors": tuple(tensor(row) for row in rows)}
            if subject in loaders:
                values["loader"] = value_of(loaders[subject])
            yield from self._samples.one(source, "batch", subject, values)

    def _groups(self, source: StateSource) -> Iterator[Sample]:
        for axis in source.axes:
            ranks = source.ranks(axis)
            if ranks is not None:
                yield from self._samples.one(source, "group", axis, {"ranks": ranks})

    def _new(self, source: StateSource, kind: str) -> Iterator[Sample]:
        """All fields of subjects that were never sampled."""
        if self._samples.has_new(source, kind):
            yield from self._plain_of(source, kind)
            yield from self._tensors_of(source, kind)

    def _plain_of(
        self, source: StateSource, kind: str, only: tuple[str, ...] | None = None
    ) -> Iterator[Sample]:
        names = self._plain.get(kind, ())
        if only is not None and not self._samples.has_new(source, kind):
            names = tuple(name for name in names if name in only)
        if kind in self._plain:
            yield from self._samples.plain(source, kind, names)

    def _tensors_of(
        self, source: StateSource, kind: str, only: tuple[str, ...] | None = None
    ) -> Iterator[Sample]:
        names = self._tensors.get(kind, ())
        if only is not None:
            names = tuple(name for name in names if name in only)
        if names:
            features = _features(kind, source.context.step)
            yield from self._samples.tensors(source, kind, names, features)

    def _roles_of(self, event: str) -> EventRoles:
        """The roles of an event; the calls of a family or a bare callable change nothing that lasts."""
        roles = self._roles.get(event)
        if roles is None:
            roles = roles_of(event)
            bare = event.startswith(("torch.", *self._families))
            if roles is OTHER and (bare or event in self._light):
                roles = LIGHT
            self._roles[event] = roles
        return roles

    def _is_first(self, event: str) -> bool:
        """Count a call that begins. True if it is among the first of its event in this step."""
        self._calls[event] += 1
        return self._calls[event] <= FIRST_CALLS


def _features(kind: str, step: int) -> tuple[str, ...]:
    """Which features of a kind's tensors are recorded."""
    if kind == "generator":
        return ("digest",)
    return INITIAL if kind == "parameter" and step <= INITIAL_STEPS else STATE


def light_events(spec: WatchSpec) -> frozenset[str]:
    """Events without roles whose calls change nothing, or nothing that another event does not sample."""
    named: dict[str, set[str]] = {}
    for event in spec.events:
        named.setdefault(event.name, set()).update(event.callables)
    roles = {name: roles_of(name) for name in named}
    sampled = {path for name, paths in named.items() if roles[name] is not OTHER for path in paths}
    return frozenset(
        name
        for name, paths in named.items()
        if roles[name] is OTHER
        and all(path in sampled or COMPUTING.fullmatch(path) for path in paths)
    )
