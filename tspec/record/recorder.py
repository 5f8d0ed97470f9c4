"""The recorder: a sink that turns edges into records, and samples state where it can have changed."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterable
from typing import Any, Literal

from tspec.record.calls import CallFields
from tspec.record.instants import Instants
from tspec.record.samples import Samples, context, value_of
from tspec.record.stream import Stream
from tspec.runtime.edges import Call, Source
from tspec.runtime.live.watch import WatchSpec
from tspec.trace.model import Begin, Boundary, End, Finish, Record, Sample


class Recorder:
    """Writes one process's stream. What goes wrong in it is said once, and the job goes on unrecorded."""

    def __init__(self, stream: Stream, spec: WatchSpec) -> None:
        self.stream = stream
        self._spec = spec
        self._ambient = tuple(
            name
            for name in spec.ambient
            if name not in ("step", "epoch", "microbatch", "phase", "loss", "rank")
        )
        self._start()

    def _start(self) -> None:
        self.samples = Samples()
        self.broken = False
        self._instants = Instants(self._spec, self.samples)
        self._calls = CallFields()
        self._now: list[Any] = []

    def forked(self, source: Source, worker: int | None) -> None:
        """This is a forked child: begin anew. A loader's worker notes its random generators at once."""
        self._start()
        self.stream.forget(worker)
        if worker is not None:
            self._record(source, self._instants.of_worker)
            self._step_opens(source)

    # --- the sink ------------------------------------------------------------------------------------

    def begin(self, call: Call, source: Source) -> None:
        """A watched call begins."""
        self._record(source, self._begin, call)

    def end(self, call: Call, source: Source) -> None:
        """A watched call returned."""
        self._record(source, self._end, call)

    def boundary(
        self, span: Literal["step", "microbatch", "epoch"], index: int, source: Source
    ) -> None:
        """A span closes, and another opens."""
        self._record(source, self._boundary, span, index)
        if span == "step":
            self._step_opens(source)

    def finish(self, source: Source) -> None:
        """The run ended normally."""
        if source.context.step == 0 and self.stream.is_bystander:
            return
        self._record(source, self._finish)
        self._step_opens(source)

    # --- records -------------------------------------------------------------------------------------

    def _begin(self, call: Call, source: Source) -> Iterable[Record]:
        now = context(source)
        parent = None if call.parent is None else call.parent.id
        fields = self._calls.at_begin(call, source)
        record = Begin(call.begin, now, call.id, parent, call.event, call.callable, fields)
        samples = (*self._moment(source), *self._instants.at_begin(call, source))
        return (*samples, record) if samples else (record,)

    def _end(self, call: Call, source: Source) -> Iterable[Record]:
        samples = tuple(self._instants.at_end(call, source))
        fields = self._calls.at_end(call, source)
        seq = source.seq if call.end is None else call.end
        record = End(seq, context(source), call.id, fields, call.error)
        return (*samples, record) if samples else (record,)

    def _boundary(
        self, span: Literal["step", "microbatch", "epoch"], index: int, source: Source
    ) -> Iterable[Record]:
        yield from self._moment(source)
        yield from self._instants.at_boundary(span, source)
        yield Boundary(source.seq, context(source), span, index)

    def _finish(self, source: Source) -> Iterable[Record]:
        yield from self._moment(source)
        yield from self._instants.at_boundary("step", source)
        yield Finish(source.seq, context(source))

    def _moment(self, source: Source) -> Iterable[Sample]:
        """What is known at every moment, where it has changed."""
        names = (*self._ambient, *getattr(source, "annotated", ()))
        values = [source.ambient(name) for name in names]
        if values == self._now:
            return ()
        self._now = values
        fields = {name: value_of(value) for name, value in zip(names, values, strict=True)}
        return self.samples.one(source, "context", "", fields)

    def _record(
        self, source: Source, records: Callable[..., Iterable[Record]], *arguments: Any
    ) -> None:
        if self.broken:
            return
        try:
            self.stream.add(records(*arguments, source))
            if self.stream.impatient:
                self.stream.open(source.rank, source.world)
        except Exception as fault:
            self.broken = True
            if os.environ.get("TSPEC_DEBUG"):
                traceback.print_exc()
            print(
                f"tspec: recording stopped at step {source.context.step}: {type(fault).__name__}: {fault}"
                " (the job goes on)",
                file=sys.stderr,
            )

    def _step_opens(self, source: Source) -> None:
        """Put what was recorded so far on disk."""
        if not self.broken:
            self._guarded(self._calls.name_late)
            self._guarded(lambda: self.stream.open(source.rank, source.world))
            self._guarded(self.stream.flush)

    def close(self) -> None:
        """The end of the stream."""
        self._guarded(self.stream.close)

    def _guarded(self, action: Callable[[], Any]) -> None:
        try:
            action()
        except Exception as fault:
            self.broken = True
            if os.environ.get("TSPEC_DEBUG"):
                traceback.print_exc()
            print(f"tspec: recording stopped: {fault} (the job goes on)", file=sys.stderr)
