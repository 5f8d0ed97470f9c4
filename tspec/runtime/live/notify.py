"""The edges that sinks are notified of. An error of a sink passes the boundary that catches tspec's own faults."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tspec.runtime.edges import Sink, SkipCall, StateSource, WatchedCall


class SinkError(BaseException):
    """Carries an error of a sink past the boundary that catches tspec's own faults."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


def begin(sinks: Sequence[Sink], call: WatchedCall, source: StateSource) -> bool:
    """A call begins. True if a sink asks to leave it out."""
    skipped = False
    for sink in sinks:
        try:
            sink.begin(call, source)
        except SkipCall:
            skipped = True
        except BaseException as error:
            raise SinkError(error) from None
    return skipped


def end(sinks: Sequence[Sink], call: WatchedCall, source: StateSource) -> None:
    """A call returned, or raised."""
    for sink in sinks:
        try:
            sink.end(call, source)
        except BaseException as error:
            raise SinkError(error) from None


def tell(sinks: Sequence[Sink], action: Callable[[Sink], None]) -> None:
    """Something else happened, in order of the sinks."""
    try:
        for sink in sinks:
            action(sink)
    except BaseException as error:
        raise SinkError(error) from None
