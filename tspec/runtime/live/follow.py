"""Following a job into the processes that it starts: fresh interpreters, forks, and their ends.

A fresh interpreter (spawn, forkserver, subprocess) reads the environment: a folder on PYTHONPATH
holds a `sitecustomize` that calls `module.function(argument)` once torch is imported there.
"""

from __future__ import annotations

import atexit
import json
import multiprocessing.process
import multiprocessing.util
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

from tspec.runtime.live.instrument.frames import with_room
from tspec.runtime.live.instrument.patches import attribute
from tspec.runtime.live.job import LiveJob
from tspec.runtime.live.process import PROCESS

SITE = Path(__file__).resolve().parents[2] / "site"
VARIABLE = "TSPEC_FOLLOW"
HOOKS = "TSPEC_HOOKS"
"""Environment variable: the path of compiled hooks that the user wants in all interpreters."""


@contextmanager
def children_start(module: str, function: str, argument: str) -> Iterator[None]:
    """Within the block, interpreters that this process starts call `module.function(argument)`."""
    said = {"module": module, "function": function, "argument": argument}
    _start_in_children([*followed_in_children(), said])
    try:
        yield
    finally:
        _start_in_children([each for each in followed_in_children() if each != said])


def followed_in_children() -> list[dict[str, str]]:
    """The start-up calls of Python interpreters that this process starts; empty if those are not
    followed.
    """
    said: list[dict[str, str]] = json.loads(os.environ.get(VARIABLE, "[]"))
    return said


def _start_in_children(said: list[dict[str, str]]) -> None:
    before = os.environ.get("PYTHONPATH")
    paths = [path for path in (before or "").split(os.pathsep) if path and path != str(SITE)]
    if said or os.environ.get(HOOKS):
        paths.insert(0, str(SITE))
    if said:
        os.environ[VARIABLE] = json.dumps(said)
    else:
        os.environ.pop(VARIABLE, None)
    if paths:
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    elif before is not None:
        del os.environ["PYTHONPATH"]


class ProcessEnd:
    """Ends a job when its process ends: at exit, or by `os._exit`, as multiprocessing and many scripts leave.

    `closed` is called last. An uncaught exception or another status than 0 is no normal end.
    """

    def __init__(self, job: LiveJob, closed: Callable[[], None]) -> None:
        self._job = job
        self._closed = closed
        self._failed = False
        self._pid = os.getpid()
        self._over = False
        self._leave = os._exit
        self._hooks = ExitStack()

    def arm(self) -> None:
        """In a process that was started for the job, and in all that it forks."""
        atexit.register(self.end)
        self._leave = os._exit
        self._hooks.enter_context(attribute(os, "_exit", self._left))
        self._watch_failures()
        # A child clears the registry of finalizers when it begins, and then runs what was
        # registered here.
        multiprocessing.util.register_after_fork(self, ProcessEnd._in_child)

    def _in_child(self) -> None:
        """A child of multiprocessing begins: its end is still to come."""
        if self._job.active:
            self._pid = os.getpid()
            self._over = self._failed = False
            multiprocessing.util.Finalize(None, self.end, exitpriority=-100)

    def _watch_failures(self) -> None:
        hook = sys.excepthook

        def excepthook(
            kind: type[BaseException], error: BaseException, trace: TracebackType | None
        ) -> None:
            self._failed = True
            hook(kind, error, trace)

        self._hooks.enter_context(attribute(sys, "excepthook", excepthook))
        run = vars(multiprocessing.process.BaseProcess)["run"]
        PROCESS.exchange(run, self, self._into)

    def _into(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @with_room
        def run(process: Any) -> Any:
            try:
                return original(process)
            except SystemExit as error:
                self._failed = error.code not in (None, 0)
                raise
            except BaseException:
                self._failed = True
                raise

        return run

    def _left(self, status: int) -> NoReturn:
        """`os._exit`. From another thread it is how a job leaves that hangs: nothing is waited for then."""
        try:
            if threading.current_thread() is threading.main_thread():
                self._failed |= status != 0
                self.end()
        finally:
            self._leave(status)

    def disarm(self) -> None:
        """The job ended by itself."""
        atexit.unregister(self.end)
        self._over = True
        PROCESS.release(self)
        self._hooks.close()

    def end(self) -> None:
        """The process ends."""
        if self._over or os.getpid() != self._pid:
            return
        self._over = True
        if not self._failed:
            self._job.finish()
        self._job.close()
        self._closed()
