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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FunctionType, TracebackType
from typing import Any

from tspec.runtime.live.job import Job
from tspec.runtime.live.swap import Swapped

SITE = Path(__file__).resolve().parent / "site"
VARIABLE = "TSPEC_FOLLOW"


@contextmanager
def children_start(module: str, function: str, argument: str) -> Iterator[None]:
    """Within the block, interpreters that this process starts call `module.function(argument)`."""
    before = {name: os.environ.get(name) for name in (VARIABLE, "PYTHONPATH")}
    said = {"module": module, "function": function, "argument": argument}
    os.environ[VARIABLE] = json.dumps(said)
    paths = [str(SITE), *filter(None, (before["PYTHONPATH"] or "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


class Ending:
    """Ends a job when its process ends, however that is: at exit, or where multiprocessing leaves by `os._exit`.

    `closed` is called last. An uncaught exception or a failing child is no normal end.
    """

    def __init__(self, job: Job, closed: Callable[[], None]) -> None:
        self._job = job
        self._closed = closed
        self._failed = False
        self._pid = os.getpid()
        self._over = False
        self._run: Swapped | None = None

    def arm(self) -> None:
        """In a process that was started for the job, and in all that it forks."""
        atexit.register(self.end)
        self._watch_failures()
        # The registry of finalizers is emptied when a child begins; what is registered so is run then.
        multiprocessing.util.register_after_fork(self, Ending._in_child)

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

        sys.excepthook = excepthook
        run = vars(multiprocessing.process.BaseProcess)["run"]
        self._run = Swapped(run, self._into)

    def _into(self, original: FunctionType) -> Callable[..., Any]:
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

    def disarm(self) -> None:
        """The job ended by itself."""
        atexit.unregister(self.end)
        self._over = True
        if self._run is not None:
            self._run.restore()
            self._run = None

    def end(self) -> None:
        """The process ends."""
        if self._over or os.getpid() != self._pid:
            return
        self._over = True
        if not self._failed:
            self._job.finish()
        self._job.close()
        self._closed()
