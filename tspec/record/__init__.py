"""Recording: from a live job to a trace, by the same probes as hooks use.

`tspec.record(DIR)` in code is `recording` with the shipped vocabulary; the command line calls
`record_script`. Nothing heavy is imported before one of them is used.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from tspec.record.destination import Destination
    from tspec.runtime.sources import Sources


class RecordingError(Exception):
    """A recording cannot begin; the message says why."""


def record(
    out: str | Path,
    specs: Sequence[str | Path] = (),
    max_trace_size: str | None = None,
    redact: Literal["paths"] | None = None,
) -> AbstractContextManager[Any]:
    """Record the block into the folder `out`: `with tspec.record("runs/a"):`.

    `specs` are spec files whose events and entities are watched beside the shipped ones.
    `max_trace_size`, such as "2GB", bounds the recordings of all ranks together. `redact="paths"`
    leaves out the files, lines and functions of the script, and its command. Raises RecordingError
    if a spec has errors or the folder cannot be recorded into, ValueError for a malformed size or
    an unknown `redact`.
    """
    from tspec.record.destination import Destination
    from tspec.record.start import recording
    from tspec.runtime.sources import Sources
    from tspec.trace.sizes import size_of

    if redact not in (None, "paths"):
        raise ValueError(f'`redact` is "paths" or None, not {redact!r}')

    limit = None if max_trace_size is None else size_of(max_trace_size)
    sources = Sources(Path.cwd(), redact == "paths")
    return recording(Destination(Path(out), limit), _spec(specs), sources)


def record_script(
    to: Destination,
    command: Sequence[str],
    specs: Sequence[str | Path] = (),
    sources: Sources | None = None,
) -> int:
    """Run `script.py ARGS` or `-m module ARGS` as Python would, record it, return its exit status.

    `sources` says how lines of the script are named; without it, from the working folder on.

    Raises OSError if there is no such script, RecordingError if a spec has errors.
    """
    from tspec.record.start import record_script as start
    from tspec.runtime.sources import Sources

    return start(to, command, _spec(specs), sources or Sources(Path.cwd()))


def _spec(specs: Sequence[str | Path]) -> Any:
    from tspec.record.specs import vocabulary
    from tspec.record.watch import watch_spec

    return watch_spec(vocabulary([Path(spec) for spec in specs]))


class _Callable(ModuleType):
    """The room and the function share a name: `tspec.record(DIR)` calls `tspec.record.record`."""

    __call__ = staticmethod(record)


sys.modules[__name__].__class__ = _Callable
