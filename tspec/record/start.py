"""Starting a recording: of a script, of a block of code, and of the processes that either starts."""

from __future__ import annotations

import json
import os
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tspec.record import RecordingError
from tspec.record.destination import Destination
from tspec.record.folder import obstacle
from tspec.record.recorder import Recorder
from tspec.record.stream import STARTED, StreamWriter
from tspec.runtime.live import LiveJob, WatchSpec
from tspec.runtime.live.follow import ProcessEnd, children_start
from tspec.runtime.live.script import run_script
from tspec.runtime.live.watch import as_json, from_json
from tspec.runtime.messages.folders import argument_file
from tspec.runtime.messages.notes import rank_notes
from tspec.runtime.sources import Sources
from tspec.targets.adapters import ADAPTERS


def record_script(
    to: Destination, command: Sequence[str], spec: WatchSpec, sources: Sources
) -> int:
    """Run `script.py ARGS` or `-m module ARGS` and record it into a folder. Returns its own exit status.

    Raises OSError if there is no such script; TraceError if the folder holds a recording already.
    """
    said = "" if sources.redacted else " ".join(command)
    recorder = recorder_of(to, spec, said)
    job = LiveJob(spec, [recorder], sources, ADAPTERS, rank_notes())
    with _followed(to, spec, said, sources):
        ending = ProcessEnd(job, recorder.close)
        ending.arm()
        try:
            return run_script(command, job)
        finally:
            recorder.close()
            ending.disarm()


@contextmanager
def recording(to: Destination, spec: WatchSpec, sources: Sources) -> Iterator[LiveJob]:
    """Record the job within the block. Raises RecordingError if the folder cannot hold a recording."""
    why = obstacle(to.folder)
    if why is not None:
        raise RecordingError(f"{to.folder} cannot be recorded into: {why}")
    said = "" if sources.redacted else " ".join(sys.argv)
    recorder = recorder_of(to, spec, said)
    with _followed(to, spec, said, sources):
        try:
            with LiveJob(spec, [recorder], sources, ADAPTERS, rank_notes()) as job:
                yield job
        finally:
            recorder.close()


def join(argument: str) -> None:
    """Start recording in a child of a recorded process.

    `argument` is the path of the parent's file of settings.
    """
    given = json.loads(Path(argument).read_text(encoding="utf-8"))
    spec = from_json(given["watch"])
    recorder = recorder_of(Destination.of_json(given["to"]), spec, given["command"])
    job = LiveJob(spec, [recorder], Sources.of_json(given["sources"]), ADAPTERS, rank_notes())
    job.__enter__()
    ProcessEnd(job, recorder.close).arm()


@contextmanager
def begins_now() -> Iterator[None]:
    """Mark in the environment that a recording has begun, for processes that start within the
    block.
    """
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
def _followed(to: Destination, spec: WatchSpec, command: str, sources: Sources) -> Iterator[None]:
    given = {
        "to": to.as_json(),
        "watch": as_json(spec),
        "command": command,
        "sources": sources.as_json(),
    }
    with (
        argument_file(given) as path,
        begins_now(),
        children_start("tspec.record.start", "join", str(path)),
    ):
        yield


def recorder_of(to: Destination, spec: WatchSpec, command: str) -> Recorder:
    """The sink that records into a folder. Its metadata contain `command`, unless that is empty."""
    import torch

    meta = {
        **({"command": command} if command else {}),
        "torch": torch.__version__,
        "python": platform.python_version(),
        "system": platform.system(),
    }
    # The script may go to another folder before the stream is opened.
    return Recorder(StreamWriter(to.folder.resolve(), meta, to.limit), spec)
