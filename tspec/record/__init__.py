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
from typing import Any


class RecordingError(Exception):
    """A recording cannot begin; the message says why."""


def record(out: str | Path, specs: Sequence[str | Path] = ()) -> AbstractContextManager[Any]:
    """Record the block into the folder `out`: `with tspec.record("runs/a"):`.

    `specs` are spec files whose events and entities are watched beside the shipped ones. Raises
    RecordingError if one of them has errors.
    """
    from tspec.record.start import recording

    return recording(Path(out), _spec(specs))


def record_script(
    out: str | Path, script: str, args: Sequence[str], specs: Sequence[str | Path] = ()
) -> int:
    """Run a script as `python script.py ARGS` would, record it into the folder `out`, return its exit status.

    Raises OSError if there is no such script, RecordingError if a spec has errors.
    """
    from tspec.record.start import record_script as start

    return start(Path(out), script, args, _spec(specs))


def _spec(specs: Sequence[str | Path]) -> Any:
    from tspec.record.specs import vocabulary
    from tspec.record.watch import watch_spec

    return watch_spec(vocabulary([Path(spec) for spec in specs]))


class _Callable(ModuleType):
    """The room and the function share a name: `tspec.record(DIR)` calls `tspec.record.record`."""

    def __call__(
        self, out: str | Path, specs: Sequence[str | Path] = ()
    ) -> AbstractContextManager[Any]:
        return record(out, specs)


sys.modules[__name__].__class__ = _Callable
