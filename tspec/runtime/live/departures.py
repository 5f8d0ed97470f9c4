"""Optimizers and schedules that the script lets go after its last step are kept until the run ends, and of loaders what they said.

A loop in a function loses them when it returns, before the run ends, and rules of the whole run could not tell any more
what was trained, or in which order the last epoch was. A loader's data is not kept: it may be large. Models are held by the names that the registry gave them, as long as no optimizer is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torch.utils.data import DataLoader

from tspec.runtime.live.installation import Installation
from tspec.runtime.live.state import SubjectRegistry

FINALIZED: tuple[type, ...] = (Optimizer, LRScheduler, DataLoader)
"""Classes whose objects are kept, or remembered."""


class DepartedSubjects:
    """Holds what the script has let go, until the next step opens or something is built.

    Only what was there when the last step opened is kept: optimizers that a step makes and drops are not.
    """

    def __init__(self, state: SubjectRegistry) -> None:
        self._state = state
        self._standing: frozenset[int] = frozenset()
        self._kept: list[Any] = []

    def departs(self, thing: Any) -> None:
        """An object is about to be freed. A finalizer calls this, on any thread."""
        if id(thing) not in self._standing:
            return
        if isinstance(thing, DataLoader):
            self._state.loaders.departs(thing)
        else:
            self._kept.append(thing)
            self._state.keep(thing)

    def release(self) -> None:
        """Let go of all that is kept."""
        self._standing = frozenset()
        self._kept = []
        self._state.loaders.release()

    def step_opened(self) -> None:
        """Remember what is there now."""
        state = self._state
        kinds = (state.optimizers.things(), state.schedulers.things(), state.loaders.alive())
        self._standing = frozenset(id(thing) for things in kinds for thing in things.values())


@contextmanager
def followed(jobs: Callable[[], Sequence[Installation]]) -> Iterator[None]:
    """Within the block jobs are notified before an object of these classes is freed.

    A finalizer may keep its object (PEP 442), and is called once. A class with a finalizer of its own is left alone.
    """

    def finalizer(self: Any) -> None:
        for job in jobs():
            job.departs(self)

    with ExitStack() as undo:
        for kind in FINALIZED:
            if not hasattr(kind, "__del__"):
                kind.__del__ = finalizer  # type: ignore[attr-defined]
                undo.callback(_restore, kind, finalizer)
        yield


def _restore(kind: type, finalizer: Any) -> None:
    """Take the finalizer away, unless somebody put another one there."""
    if vars(kind).get("__del__") is finalizer:
        del kind.__del__  # type: ignore[attr-defined]
