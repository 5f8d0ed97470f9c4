"""Keeps optimizers and schedules that the script drops after its last step until the run ends, and
facts about its loaders.

A loop in a function drops them when it returns, before the run ends. Rules of the whole run could
then not find what was trained, or the order of the last epoch. A loader's data is not kept, since
it may be large. Models are found by the names that the registry gave them, as long as no optimizer
was freed.
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
    """Keeps dropped objects until the next step opens or something is built.

    Only objects that existed when the last step opened are kept, not optimizers that a step creates
    and drops.
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
        """Remember the optimizers, schedulers and loaders that exist now."""
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
    """Remove the finalizer, unless other code has replaced it."""
    if vars(kind).get("__del__") is finalizer:
        del kind.__del__  # type: ignore[attr-defined]
