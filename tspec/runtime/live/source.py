"""The live source: answers the questions of sinks about a running job, as of this instant."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from tspec.runtime.edges import Context, Location, Missing, Past, Ref
from tspec.runtime.live.ambient import AmbientValues
from tspec.runtime.live.entities.messages import FEATURES, TensorSnapshot
from tspec.runtime.live.features import features
from tspec.runtime.live.instrument.threads import IsolatedWork, ThreadState
from tspec.runtime.live.process import PROCESS
from tspec.runtime.live.ranks import RankTopology
from tspec.runtime.live.state import SubjectRegistry
from tspec.runtime.live.steps import LoopState, is_empty
from tspec.runtime.live.watch import WatchSpec
from tspec.runtime.messages.say import warn
from tspec.runtime.transfers import RowInTransfer, Transfer
from tspec.values import STEP_OF_RUN, Datum, step_of_run

Row = dict[str, Datum] | RowInTransfer


class LiveSource:
    """The `StateSource` of one process. It also reports the questions that it cannot answer."""

    def __init__(self, spec: WatchSpec, warn: Callable[[str], None] = warn) -> None:
        self.spec = spec
        self._warn = warn
        self.threads = ThreadState()
        self.ranks_known = RankTopology(spec.groups, self.say)
        self.place = LoopState()
        self.state = SubjectRegistry(
            spec, self.ranks_known, self.unread, self._readable, self._before_update
        )
        self.known = AmbientValues()
        self._context = Context()
        self.first_step: int | None = None
        """The number of the step that opened first in this run; None if none has."""
        self._of_loop: Mapping[str, Callable[[], Any]] = {
            "step": lambda: self._context.step,
            "epoch": lambda: self._context.epoch,
            "microbatch": lambda: self._context.microbatch,
            "phase": lambda: self._context.phase,
            "rank": lambda: self.rank,
            STEP_OF_RUN: lambda: step_of_run(self._context.step, self.first_step),
        }
        self._location: Location | None = None
        self._has_gpu = torch.cuda.is_available()
        self._transfer: Transfer | None = None
        self._seq = 0
        self._said: set[str] = set()
        self._unread: set[tuple[str, str]] = set()

    @property
    def rank(self) -> int:
        """This process's rank, as far as it is known by now."""
        return self.ranks_known.rank

    @property
    def world(self) -> int:
        """The number of ranks of the job, as far as it is known."""
        return self.ranks_known.world

    def _before_update(self) -> bool:
        """A backward pass has begun on this thread, or ended, and the update from its gradients is to come."""
        return self.place.backward_since_update or torch._C._current_graph_task_id() != -1

    @property
    def seq(self) -> int:
        """The number of this instant."""
        return self._seq

    @property
    def context(self) -> Context:
        """Step, epoch, microbatch and phase."""
        return self._context

    @property
    def in_empty_step(self) -> bool:
        """Nothing was trained in the step that is open, after a step that trained."""
        return is_empty(self.place)

    @property
    def location(self) -> Location | None:
        """The line of the latest backward pass or update."""
        return self._location

    def ambient(self, name: str) -> Datum:
        """The value of `loss`, `autocast.enabled`, `autocast.dtype`, `cuda.available`, `rank`, or
        an annotation.
        """
        read = self._of_loop.get(name)
        return self.known.value(name) if read is None else read()

    @property
    def version(self) -> tuple[int, ...]:
        """Differs when something was built, found or replaced, process groups too."""
        return self.state.version

    @property
    def annotated(self) -> tuple[str, ...]:
        """Names that the script has annotated."""
        return tuple(self.known.annotated)

    def subjects(self, kind: str) -> Sequence[str]:
        """Canonical names of all subjects of the kind, the oldest first."""
        return self.state.subjects(kind)

    def fields(self, kind: str, name: str) -> Mapping[str, Datum]:
        """One declared field of all subjects of the kind."""
        return self.state.fields(kind, name)

    def features(
        self, tensors: Sequence[Any], names: tuple[str, ...]
    ) -> Sequence[Mapping[str, Datum]]:
        """Features of many tensors at once; `name` is the canonical name of a parameter or buffer."""
        if PROCESS.quiet.isolated:  # within an edge
            return self._features(tensors, names)
        with IsolatedWork(PROCESS.quiet):
            return self._features(tensors, names)

    def _features(self, tensors: Sequence[Any], names: tuple[str, ...]) -> list[Row]:
        found = self._recorded(tensors, names)
        if "name" in names:
            for row, tensor in zip(found, tensors, strict=True):
                row["name"] = (
                    tensor if isinstance(tensor, Missing) else self.state.tensor_name(tensor)
                )
        return found

    def _recorded(self, tensors: Sequence[Any], names: tuple[str, ...]) -> list[Row]:
        """Features of live tensors; of a snapshot, the features that were recorded in it."""
        if not self.state.messages.seen:
            return self._readable(tensors, names)
        live = iter(
            self._readable([t for t in tensors if not isinstance(t, TensorSnapshot)], names)
        )
        return [t.row(names) if isinstance(t, TensorSnapshot) else next(live) for t in tensors]

    def _readable(self, tensors: Sequence[Any], names: tuple[str, ...]) -> list[Row]:
        """Features of live tensors. If one tensor cannot be read, the others still are."""
        try:
            found = features(tensors, names)
            if self._has_gpu:
                for row in found:
                    if isinstance(row, RowInTransfer) and row.transfer is not None:
                        self._transfer = row.transfer
                        break
            return found
        except Exception as fault:
            if len(tensors) > 1:
                return [self._readable((each,), names)[0] for each in tensors]
            [tensor] = tensors
            kind = f"{type(tensor).__name__} of {getattr(tensor, 'dtype', 'no dtype')}"
            self.say(
                f"a {kind} cannot be read, and is not recorded: {type(fault).__name__}: {fault}"
            )
            return [dict.fromkeys(names, Missing.NOT_RECORDED)]

    @property
    def transfer(self) -> Transfer | None:
        """The latest copy from a GPU that may not have arrived; None if there is none."""
        if self._transfer is not None and self._transfer.arrived():
            self._transfer = None
        return self._transfer

    @property
    def past(self) -> Past | None:
        """None: a live job keeps no history, so sinks keep the values that they need later."""
        return None

    @property
    def staggered(self) -> bool:
        """The job sends from rank to rank, as pipelines do: ranks open a step one after another."""
        return self.state.messages.seen

    def born(self, kind: str) -> Mapping[str, int]:
        """The instants at which transient subjects came into being, where these differ from when
        they are first seen.
        """
        return self.state.messages.born() if kind == "message" else {}

    def taken_up(self, tensors: Sequence[Any] = (), gradients: Sequence[Any] = ()) -> None:
        """Training continues with received tensors: a layer is about to read `tensors`, or a
        backward pass to begin with `gradients`.
        """
        messages = self.state.messages
        if messages.seen:
            messages.taken_up(self._seq)
            self.state.receive_buffers.reads(tensors)
            for tensor in tensors:
                messages.reading(tensor, lambda each: self.features((each,), FEATURES)[0])
            for gradient in gradients:
                messages.using(gradient)

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of all axes that the job has by now and that rules may name."""
        return self.ranks_known.axes()

    def groups(self) -> dict[str, tuple[int, ...]]:
        """This rank's group on each axis, also on those of its framework that no rule may name."""
        return self.ranks_known.groups()

    def ranks(self, axis: str) -> tuple[int, ...] | None:
        """This rank's group on the axis, itself included; None if the job has no such axis."""
        return self.ranks_known.on_axis(axis)

    def reference(self, kind: str, thing: Any) -> Ref | None:
        """The subject that an object is."""
        return self.state.reference(kind, thing)

    # --- what goes wrong ----------------------------------------------------------------------------

    def unread(self, kind: str, field: str, why: str) -> None:
        """A field of an event or a subject could not be read: said once, with the first reason."""
        if (kind, field) not in self._unread:
            self._unread.add((kind, field))
            self.say(f"{kind}.{field} is not recorded: {why}")

    def say(self, message: str) -> None:
        """Tell the person at the terminal something, once."""
        if message not in self._said:
            self._said.add(message)
            self._warn(message)

    def fault(self, where: str, fault: Exception) -> None:
        """A fault of tspec's own: log it; the job continues."""
        self.say(f"internal error {where}: {type(fault).__name__}: {fault} (the job goes on)")
        if os.environ.get("TSPEC_DEBUG"):
            traceback.print_exception(fault)
