"""Generated hooks in this process, for as long as a `with` block runs."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tspec.runtime.checker import Checker, CheckerOptions
from tspec.runtime.messages.notes import rank_notes

if TYPE_CHECKING:
    from tspec.runtime.generated import GeneratedModule
    from tspec.runtime.live import LiveJob, WatchSpec
    from tspec.runtime.live.adapter import Adapter


class Installed:
    """Checks a program's rules in this process, from `__enter__` to `__exit__`.

    `adapters` are those of the target's framework. `options` are those of `CheckerOptions`:
    `folder` for findings in files, `callback` for each as a dict. Installations nest and end in any
    order; after the last, torch is as it was before the first. At its end a summary on standard
    error gives the violated rules and the number of decided instances. With several ranks the first
    rank prints it for all, after it has waited for their ends. Raises RuntimeError if it is entered
    twice.
    """

    def __init__(
        self,
        program: GeneratedModule,
        watch: WatchSpec,
        adapters: Sequence[Adapter] = (),
        **options: Any,
    ) -> None:
        self.checker = Checker(
            program, CheckerOptions(**{"one_summary": "folder" not in options} | options)
        )
        self.job: LiveJob | None = None
        """The job that is followed, from `__enter__` on."""
        self._watch = watch
        self._adapters = adapters

    def __enter__(self) -> Checker:
        from tspec.runtime.live import LiveJob

        if self.job is not None:
            raise RuntimeError("these hooks are installed already: call install() again")
        notes = rank_notes()
        self.job = LiveJob(self._watch, [self.checker], adapters=self._adapters, warn=notes)
        try:
            self.job.__enter__()
        except BaseException:
            self.checker.close()
            raise
        return self.checker

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.job is not None:
            try:
                self.job.__exit__(kind, error, trace)
            finally:
                self.checker.close()
                self.checker.summarize()
