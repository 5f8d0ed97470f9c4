"""The processes of a checked job: the script's own, and those that it starts. Each loads the compiled hooks."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from tspec.record.destination import Destination
from tspec.run.folder import joins, stopped_before
from tspec.run.supervise import follow_parent
from tspec.runtime.actions import JobStopped
from tspec.runtime.live.watch import WatchSpec, as_json, from_json
from tspec.runtime.messages.launch import launched
from tspec.runtime.messages.notes import SharedNotes
from tspec.runtime.messages.say import say
from tspec.runtime.named import loaded
from tspec.runtime.sources import Sources

if TYPE_CHECKING:
    from tspec.runtime.checker import Checker
    from tspec.runtime.live import LiveJob


@dataclass(frozen=True, slots=True)
class RecordingSettings:
    """The recording of a checked job: its folder, and the events and values that are watched for
    it.
    """

    to: Destination
    watch: WatchSpec
    command: str


@dataclass(frozen=True, slots=True)
class ChildSettings:
    """The settings of a process of a checked job."""

    hooks: Path
    folder: Path
    command: tuple[str, ...]
    """The script, or `-m` and a module, and its arguments."""
    sources: Sources
    recorded: RecordingSettings | None = None
    nodes: str = ""
    """The name of the folder if ranks may be on several machines. The first rank finds by it the
    ranks that do not share the folder.
    """
    check_steps: str = ""
    """The steps in which rules are checked (`tspec.schedule`); empty for all."""

    def write(self, path: Path) -> None:
        """Write it as JSON."""
        found: dict[str, Any] = {
            "hooks": str(self.hooks),
            "folder": str(self.folder),
            "command": self.command,
            "sources": self.sources.as_json(),
            "nodes": self.nodes,
            "check_steps": self.check_steps,
        }
        if self.recorded is not None:
            found["recorded"] = {
                "to": self.recorded.to.as_json(),
                "watch": as_json(self.recorded.watch),
                "command": self.recorded.command,
            }
        path.write_text(json.dumps(found), encoding="utf-8")

    @staticmethod
    def read(path: Path) -> ChildSettings:
        """Read the settings that `write` wrote."""
        found = json.loads(path.read_text(encoding="utf-8"))
        recorded = found.get("recorded")
        if recorded is not None:
            watch = from_json(recorded["watch"])
            recorded = RecordingSettings(
                Destination.of_json(recorded["to"]), watch, recorded["command"]
            )
        hooks, folder = Path(found["hooks"]), Path(found["folder"])
        sources = Sources.of_json(found["sources"])
        return ChildSettings(
            hooks,
            folder,
            tuple(found["command"]),
            sources,
            recorded,
            found["nodes"],
            found["check_steps"],
        )


def checker_of(given: ChildSettings) -> tuple[Checker, WatchSpec]:
    """The sink of a generated file, and the events and values to watch for it."""
    module = loaded(given.hooks)
    options = {
        "folder": given.folder,
        "nodes": given.nodes,
        "check_steps": given.check_steps,
    }
    return module.hooks(**options), module.WATCH


def followed(given: ChildSettings) -> tuple[LiveJob, Callable[[], None]]:
    """A checked job, which is recorded if requested, and a function that closes its sinks."""
    from tspec.runtime.live import LiveJob
    from tspec.targets.adapters import ADAPTERS

    checker, watch = checker_of(given)
    notes = SharedNotes(given.folder).warn
    recorded = given.recorded
    if recorded is None:
        return LiveJob(watch, [checker], given.sources, ADAPTERS, notes), lambda: _closed(checker)
    from tspec.record.joined import joined
    from tspec.record.start import recorder_of

    watch = joined(watch, recorded.watch)
    recorder = recorder_of(recorded.to, watch, recorded.command)

    def close() -> None:
        recorder.close()
        _closed(checker)

    return LiveJob(watch, [recorder, checker], given.sources, ADAPTERS, notes), close


def _closed(checker: Checker) -> None:
    """Close a checker.

    If a launcher sends SIGTERM meanwhile, waiting ends and the remaining output is still written.
    """
    before = signal.getsignal(signal.SIGTERM)
    if before is not signal.SIG_DFL or threading.current_thread() is not threading.main_thread():
        checker.close()
        return
    signal.signal(signal.SIGTERM, lambda number, frame: checker.hurry())
    try:
        checker.close()
    finally:
        signal.signal(signal.SIGTERM, before)


def join(argument: str) -> None:
    """Check rules in a child of a checked process. `argument` is the path of the parent's file of
    settings.

    Raises JobStopped in a rank that a launcher within the run starts again after a rule stopped its
    job.
    """
    from tspec.runtime.live.follow import ProcessEnd

    given, launch = ChildSettings.read(Path(argument)), launched()
    if before := stopped_before(given.folder, launch):
        SharedNotes(given.folder).warn(before)
        raise JobStopped
    joins(given.folder, launch)
    job, close = followed(given)
    job.__enter__()
    ProcessEnd(job, close).arm()


def run(argument: str) -> int:
    """Run the script with rules checked in it; the script's own exit status."""
    from tspec.runtime.live.follow import ProcessEnd, children_start
    from tspec.runtime.live.script import run_script

    given = ChildSettings.read(Path(argument))
    job, close = followed(given)
    with _begun(given.recorded), children_start("tspec.run.child", "join", argument):
        ending = ProcessEnd(job, close)
        ending.arm()
        try:
            return run_script(given.command, job)
        finally:
            close()
            ending.disarm()


def _begun(recorded: RecordingSettings | None) -> AbstractContextManager[None]:
    if recorded is None:
        return nullcontext()
    from tspec.record.start import begins_now

    return begins_now()


def main() -> NoReturn:
    """The script's own process. Its argument is a file that `ChildSettings.write` wrote."""
    follow_parent()
    try:
        status = run(sys.argv[1])
    except Exception as fault:  # the script's own are reported and turned into a status before
        say(f"the run could not begin or end: {type(fault).__name__}: {fault}")
        status = 2
    sys.exit(status)
