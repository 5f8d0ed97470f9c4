"""Starting a recording: of a script, of a block of code, and of the processes that either starts."""

from __future__ import annotations

import os
import pickle
import platform
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tspec.record.recorder import Recorder
from tspec.record.stream import STARTED, Stream
from tspec.runtime.live import Job, WatchSpec
from tspec.runtime.live.follow import Ending, children_start
from tspec.runtime.live.script import run_script


def record_script(out: Path, script: str, args: Sequence[str], spec: WatchSpec) -> int:
    """Run a script and record it into a folder. Returns the script's own exit status.

    Raises OSError if there is no such script; TraceError if the folder holds a recording already.
    """
    recorder = recorder_of(out, spec, " ".join((script, *args)))
    job = Job(spec, [recorder])
    with _followed(out, spec, " ".join((script, *args))):
        ending = Ending(job, recorder.close)
        ending.arm()
        try:
            return run_script(script, list(args), job)
        finally:
            recorder.close()
            ending.disarm()


@contextmanager
def recording(out: Path, spec: WatchSpec) -> Iterator[Job]:
    """Record what happens in the block."""
    recorder = recorder_of(out, spec, " ".join(sys.argv))
    with _followed(out, spec, " ".join(sys.argv)):
        try:
            with Job(spec, [recorder]) as job:
                yield job
        finally:
            recorder.close()


def join(argument: str) -> None:
    """Start recording in a child of a recorded process. `argument` is the path of what the parent left."""
    out, spec, command = pickle.loads(Path(argument).read_bytes())
    recorder = recorder_of(out, spec, command)
    job = Job(spec, [recorder])
    job.__enter__()
    Ending(job, recorder.close).arm()


@contextmanager
def begins_now() -> Iterator[None]:
    """Processes that start within the block are told that a recording has begun."""
    before = os.environ.get(STARTED)
    os.environ[STARTED] = str(time.time() - 1)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(STARTED, None)
        else:
            os.environ[STARTED] = before


@contextmanager
def _followed(out: Path, spec: WatchSpec, command: str) -> Iterator[None]:
    handle, name = tempfile.mkstemp(prefix="tspec-", suffix=".watch")
    with os.fdopen(handle, "wb") as file:
        file.write(pickle.dumps((out.resolve(), spec, command)))
    try:
        with begins_now(), children_start("tspec.record.start", "join", name):
            yield
    finally:
        if os.path.exists(name):
            os.unlink(name)


def recorder_of(out: Path, spec: WatchSpec, command: str) -> Recorder:
    """The sink that records into a folder. `command` is what the folder says of itself."""
    import torch

    meta = {
        "command": command,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "host": platform.system(),
    }
    return Recorder(Stream(out, meta), spec)
