"""Generated hooks in this process, for as long as a `with` block runs."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from tspec.runtime.checker import Checker

if TYPE_CHECKING:
    from tspec.runtime.live import Job, WatchSpec
    from tspec.runtime.program import Program


class Installed:
    """Checks a program's rules in this process, from `__enter__` to `__exit__`.

    `options` are those of `Checker`: `folder` for findings in files, `callback` for each as a dict.
    What torch was told to tell comes back at the end.
    """

    def __init__(self, program: Program, watch: WatchSpec, **options: Any) -> None:
        self.checker = Checker(program, **options)
        self._watch = watch
        self._job: Job | None = None

    def __enter__(self) -> Checker:
        from tspec.runtime.live import Job

        self._job = Job(self._watch, [self.checker])
        self._job.__enter__()
        return self.checker

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._job is not None:
            try:
                self._job.__exit__(kind, error, trace)
            finally:
                self.checker.close()
