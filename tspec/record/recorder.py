"""The recorder: a sink that turns edges into records, and samples state where it can have changed."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterable
from typing import Any

from tspec.record.calls import CallFields
from tspec.record.instants import Instants
from tspec.record.samples import Samples, value_of
from tspec.record.stream import StreamWriter
from tspec.runtime.edges import LoopSpan, StateSource, WatchedCall
from tspec.runtime.live.watch import WatchSpec
from tspec.runtime.messages.say import warn
from tspec.runtime.transfers import arrived
from tspec.trace.errors import TraceError
from tspec.trace.model import Begin, Boundary, End, Finish, Record, Sample
from tspec.trace.sizes import in_words
from tspec.values import STEP_OF_RUN


class Recorder:
    """Writes one process's stream. A fault of it is reported once, and the job continues
    unrecorded.
    """

    def __init__(self, stream: StreamWriter, spec: WatchSpec) -> None:
        self.stream = stream
        self._spec = spec
        self._ambient = tuple(
            name
            for name in spec.ambient
            if name not in ("step", "epoch", "microbatch", "phase", "loss", "rank", STEP_OF_RUN)
        )
        self._start()

    def _start(self) -> None:
        self.samples = Samples()
        self.ended = False
        self._instants = Instants(self._spec, self.samples)
        self._calls = CallFields()
        self._now: list[Any] = []

    def forked(self, source: StateSource, worker: int | None) -> None:
        """This is a forked child: begin anew. A loader's worker notes its random generators at once."""
        self._start()
        self.stream.forget(worker)
        if worker is not None:
            self._record(source, self._instants.of_worker)
            self._step_opens(source)

    # --- the sink ------------------------------------------------------------------------------------

    def begin(self, call: WatchedCall, source: StateSource) -> None:
        """A watched call begins."""
        self._record(source, self._begin, call)

    def end(self, call: WatchedCall, source: StateSource) -> None:
        """A watched call returned."""
        self._record(source, self._end, call)

    def boundary(self, span: LoopSpan, index: int, source: StateSource) -> None:
        """A span closes, and another opens."""
        self._record(source, self._boundary, span, index)
        if span == "step":
            self._step_opens(source)

    def finish(self, source: StateSource) -> None:
        """The run ended normally."""
        if source.context.step == 0 and self.stream.is_bystander:
            return
        self._record(source, self._finish)
        self._step_opens(source)

    # --- records -------------------------------------------------------------------------------------

    def _begin(self, call: WatchedCall, source: StateSource) -> Iterable[Record]:
        now = source.context
        parent = None if call.parent is None else call.parent.id
        fields = self._calls.at_begin(call, source)
        record = Begin(
            call.begin, now, call.id, parent, call.event, call.callable, fields, call.location
        )
        samples = (*self._moment(source), *self._instants.at_begin(call, source))
        return (*samples, record) if samples else (record,)

    def _end(self, call: WatchedCall, source: StateSource) -> Iterable[Record]:
        samples = tuple(self._instants.at_end(call, source))
        fields = self._calls.at_end(call, source)
        seq = source.seq if call.end is None else call.end
        record = End(seq, source.context, call.id, fields, call.error)
        return (*samples, record) if samples else (record,)

    def _boundary(self, span: LoopSpan, index: int, source: StateSource) -> Iterable[Record]:
        yield from self._moment(source)
        yield from self._instants.at_boundary(span, source)
        yield Boundary(source.seq, source.context, span, index, source.location)

    def _finish(self, source: StateSource) -> Iterable[Record]:
        yield from self._moment(source)
        yield from self._instants.at_boundary("step", source)
        yield Finish(source.seq, source.context, source.location, source.in_empty_step)

    def _moment(self, source: StateSource) -> Iterable[Sample]:
        """The changed names of the context."""
        names = (*self._ambient, *getattr(source, "annotated", ()))
        values = [arrived(source.ambient(name)) for name in names]
        if values == self._now:
            return ()
        self._now = values
        fields = {name: value_of(value) for name, value in zip(names, values, strict=True)}
        return self.samples.one(source, "context", "", fields)

    def _record(
        self, source: StateSource, records: Callable[..., Iterable[Record]], *arguments: Any
    ) -> None:
        if self.ended:
            return
        try:
            self.stream.add(records(*arguments, source))
            if self.stream.impatient:
                self.stream.open(source.rank, source.world)
                self._end_if_full()
        except Exception as fault:
            self._stops(fault, source.context.step)

    def _step_opens(self, source: StateSource) -> None:
        """Write the records so far to disk."""
        if not self.ended:
            self._guarded(self._calls.name_late)
            self._guarded(lambda: self.stream.open(source.rank, source.world))
            self._guarded(self.stream.flush)
            self._end_if_full()

    def close(self) -> None:
        """End the stream. This also closes a stream that has ended early, so that it can be read up
        to its end.
        """
        try:
            self.stream.close()
        except Exception as fault:
            self._stops(fault, self.stream.step)
        self._end_if_full()

    def _end_if_full(self) -> None:
        """Record no more where the limit is reached. Workers leave it to their rank to say so."""
        stream = self.stream
        if self.ended or not stream.full or stream.limit is None:
            return
        self.ended = True
        if stream.worker is not None:
            return
        limit = in_words(stream.limit)
        if stream.ranks > 1:
            limit += f" ({in_words(stream.limit // stream.ranks)} for each of {stream.ranks} ranks)"
        warn(
            f"the recording of rank {stream.rank} ends in step {stream.step}: "
            f"it reached its limit of {limit}. The job goes on"
        )

    def _guarded(self, action: Callable[[], Any]) -> None:
        if self.ended:
            return
        try:
            action()
        except Exception as fault:
            self._stops(fault, self.stream.step)

    def _stops(self, fault: Exception, step: int) -> None:
        """End the recording and report the reason, once. The job continues."""
        if self.ended:
            return
        self.ended = True
        if os.environ.get("TSPEC_DEBUG"):
            traceback.print_exc()
        where = f"in step {step}" if step else "before the first step"
        warn(
            f"the recording of rank {self.stream.rank} ends {where}: {_reason(fault)}. "
            "The job goes on"
        )


def _reason(fault: Exception) -> str:
    """The reason of a fault, in the words of the operating system where it is its error."""
    cause = fault.__cause__ if isinstance(fault, TraceError) else fault
    if isinstance(cause, OSError) and cause.errno:
        return os.strerror(cause.errno).lower()
    return str(fault) if isinstance(fault, TraceError) else f"{type(fault).__name__}: {fault}"
