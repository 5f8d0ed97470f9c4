"""Watches functions of modules that are imported later, as soon as these functions exist."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import Any

from tspec.runtime.live.installation import Installation


class _Finder(importlib.abc.MetaPathFinder):
    """Lets the other finders find, and tells the jobs when the module has been executed."""

    def __init__(self, jobs: Callable[[], Sequence[Installation]]) -> None:
        self._jobs = jobs
        self._busy = False

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec that another finder gives, with a loader that tells."""
        if self._busy or not self._wanted(fullname):
            return None
        self._busy = True
        try:
            spec = next(
                filter(
                    None,
                    (_asked(f, fullname, path, target) for f in sys.meta_path if f is not self),
                ),
                None,
            )
        finally:
            self._busy = False
        loader = None if spec is None else spec.loader
        if loader is not None and hasattr(loader, "exec_module"):
            self._tell_after(loader)
        return spec

    def _wanted(self, fullname: str) -> bool:
        return any(
            path == fullname or path.startswith(f"{fullname}.")
            for job in self._jobs()
            for path in job.functions.waiting
        )

    def _tell_after(self, loader: Any) -> None:
        execute = loader.exec_module
        own = vars(loader).get("exec_module")

        def exec_module(module: ModuleType) -> None:
            if own is None:
                del loader.exec_module
            else:
                loader.exec_module = own
            execute(module)
            for job in self._jobs():
                job.quietly(job.functions.modules_changed)

        try:
            loader.exec_module = exec_module
        except AttributeError:
            for job in self._jobs():
                job.say(f"calls in {loader!r} are not seen")


def _asked(
    finder: Any, fullname: str, path: Any, target: Any
) -> importlib.machinery.ModuleSpec | None:
    find = getattr(finder, "find_spec", None)
    found: importlib.machinery.ModuleSpec | None = (
        None if find is None else find(fullname, path, target)
    )
    return found


@contextmanager
def followed(jobs: Callable[[], Sequence[Installation]]) -> Iterator[None]:
    """Within the block, notify jobs that wait for a function when modules are imported."""
    finder = _Finder(jobs)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        with suppress(ValueError):
            sys.meta_path.remove(finder)
