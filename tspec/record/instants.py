"""When state is sampled: at the instants at which it can have changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from tspec.record.calls import is_outermost
from tspec.record.samples import FULL, STATE, Samples, tensor, value_of
from tspec.runtime.calls import UPDATES
from tspec.runtime.edges import StateSource, WatchedCall
from tspec.runtime.instant import PASSING
from tspec.runtime.live.watch import WatchSpec
from tspec.trace.model import Sample, Value

TENSORS: Mapping[str, tuple[str, ...]] = {
    "parameter": ("data", "grad", "main", "main_grad"),
    "buffer": ("data",),
    "state": ("data",),
    "generator": ("state",),
    "message": ("sent", "received", "read"),
}
"""Fields that hold a tensor."""

HOLDERS = ("parameter", "buffer", "optimizer", "param_group", "scheduler", "loader", "wrapper")
"""Kinds of which the plain fields say who holds what."""

LIGHT = frozenset(
    {
        "forward", "wrapper.forward", "matmul", "dropout", "attention", "cross_entropy", "embedding",
        "spectral_norm", "fetch", "collective", "all_reduce", "replicating", "all_to_all",
        "forward_step", "capacity", "route", "dispatch", "process",
    }
)  # fmt: skip
"""Events that change no parameters, or are called too often to look."""
LOOKS = 2
"""Of an event that is not known, so many calls in a step are looked at from both sides."""


class Instants:
    """Chooses what to sample at each edge."""

    def __init__(self, spec: WatchSpec, samples: Samples) -> None:
        self._samples = samples
        self._axes = tuple(dict.fromkeys(("world", *(group.name for group in spec.groups))))
        self._plain: dict[str, tuple[str, ...]] = {}
        self._tensors: dict[str, tuple[str, ...]] = {}
        for entity in spec.entities:
            held = TENSORS.get(entity.kind, ())
            names = [field.name for field in entity.fields]
            self._tensors[entity.kind] = tuple(name for name in names if name in held)
            self._plain[entity.kind] = tuple(name for name in names if name not in held)
        self._looked: dict[str, int] = {}
        self._version: Any = None
        self._families = tuple(event.callables[0][:-1] for event in spec.events if event.family)

    # --- edges ---------------------------------------------------------------------------------------

    def at_begin(self, call: WatchedCall, source: StateSource) -> Iterable[Sample]:
        """Samples before a call."""
        event = call.event
        if event == "forward":
            return self._before_forward(source) if is_outermost(call) else ()
        return () if self._is_light(event) else self._before(event, source)

    def _before(self, event: str, source: StateSource) -> Iterator[Sample]:
        if event in UPDATES:
            yield from self._before_update(source)
        elif event == "backward":
            yield from self._messages(source)
            yield from self._plain_of(source, "module", ("training",))
        elif event == "clip":
            yield from self._tensors_of(source, "parameter", ("grad", "main_grad"))
        elif event == "optimizer.zero_grad":
            return
        elif event == "save" or self._is_looked_at(event):
            yield from self._everything(source)

    def at_end(self, call: WatchedCall, source: StateSource) -> Iterable[Sample]:
        """Samples after a call."""
        event = call.event
        if event == "forward":
            return self._after_forward(source) if is_outermost(call) else ()
        if event == "fetch":
            return self._batches(source)
        return () if self._is_light(event) else self._after(event, source)

    def _messages(self, source: StateSource) -> Iterator[Sample]:
        """What was sent to this rank, and what became of it."""
        if source.subjects("message"):
            yield from self._plain_of(source, "message", ("source", "target"))
            yield from self._tensors_of(source, "message")

    def _after_forward(self, source: StateSource) -> Iterator[Sample]:
        yield from self._messages(source)
        yield from self._tensors_of(source, "generator")
        yield from self._tensors_of(source, "buffer")

    def _after(self, event: str, source: StateSource) -> Iterator[Sample]:
        if event in UPDATES:
            yield from self._messages(source)
            yield from self._tensors_of(source, "parameter", ("data", "main"))
            yield from self._tensors_of(source, "state")
        elif event == "backward":
            loss = value_of(source.ambient("loss"))
            yield from self._samples.one(source, "context", "", {"loss": loss})
            yield from self._tensors_of(source, "parameter", ("grad", "main_grad"))
        elif event in ("clip", "optimizer.zero_grad"):
            yield from self._tensors_of(source, "parameter", ("grad", "main_grad"))
        elif event == "scheduler.step":
            yield from self._plain_of(source, "param_group")
        elif event == "load_state_dict" or self._looked.get(event, LOOKS + 1) <= LOOKS:
            yield from self._everything(source)

    def at_boundary(
        self, span: Literal["step", "microbatch", "epoch"], source: StateSource
    ) -> Iterator[Sample]:
        """Samples where spans meet."""
        if span == "microbatch":
            return
        self._looked.clear()
        for kind in PASSING:
            self._samples.forget(source, kind)
        if span == "epoch":
            yield from self._plain_of(source, "module")
        yield from self._groups(source)
        yield from self._structure(source)
        yield from self._tensors_of(source, "parameter", ("data", "main"))
        for kind in ("buffer", "generator"):
            yield from self._tensors_of(source, kind)
        yield from self._plain_of(source, "scaler")

    def of_worker(self, source: StateSource) -> Iterator[Sample]:
        """What is worth knowing of a loader's worker: how its random generators begin."""
        return self._tensors_of(source, "generator")

    # --- what is sampled -----------------------------------------------------------------------------

    def _before_forward(self, source: StateSource) -> Iterator[Sample]:
        yield from self._messages(source)
        yield from self._new(source, "module")
        yield from self._new(source, "parameter")
        yield from self._new(source, "buffer")
        yield from self._plain_of(source, "module", ("training", "called"))
        yield from self._tensors_of(source, "generator")

    def _before_update(self, source: StateSource) -> Iterator[Sample]:
        yield from self._structure(source)
        yield from self._tensors_of(source, "parameter")
        yield from self._plain_of(source, "scaler")

    def _structure(self, source: StateSource) -> Iterator[Sample]:
        """What there is, and who holds what: all of it where something was built or replaced."""
        version = getattr(source, "version", None)
        if version is not None and version == self._version:
            yield from self._plain_of(source, "module", ("training", "called"))
            yield from self._plain_of(source, "parameter", ("requires_grad", "group"))
            yield from self._plain_of(source, "param_group")
            yield from self._plain_of(source, "loader", ("trained_on",))
            return
        self._version = version
        for kind in ("module", "parameter", "buffer", "state", "optimizer"):
            yield from self._samples.gone(source, kind)
        yield from self._new(source, "module")
        yield from self._new(source, "state")  # what an optimizer loaded is there before it updates
        yield from self._plain_of(
            source, "module", ("training", "root", "called", "parameters", "next")
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
        fields = self._plain.get("batch", ())
        loaders = source.fields("batch", "loader") if "loader" in fields else {}
        tensors = source.fields("batch", "tensors")
        for subject in list(source.subjects("batch"))[-1:]:
            rows = source.features(tensors.get(subject, ()), FULL)
            values: dict[str, Value] = {"tensors": tuple(tensor(row) for row in rows)}
            if subject in loaders:
                values["loader"] = value_of(loaders[subject])
            yield from self._samples.one(source, "batch", subject, values)

    def _groups(self, source: StateSource) -> Iterator[Sample]:
        for axis in self._axes:
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
        if only is not None:
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
            features = ("digest",) if kind == "generator" else STATE
            yield from self._samples.tensors(source, kind, names, features)

    def _is_light(self, event: str) -> bool:
        """A family's or a bare callable's calls change nothing that lasts."""
        return event in LIGHT or event.startswith("torch.") or event.startswith(self._families)

    def _is_looked_at(self, event: str) -> bool:
        """An event of the user's own may change anything."""
        if event == "scheduler.step":
            return False
        self._looked[event] = self._looked.get(event, 0) + 1
        return self._looked[event] <= LOOKS
