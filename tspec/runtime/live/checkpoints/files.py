"""Records which checkpoint files a process read, and from which of them its optimizers loaded their
states.
"""

from __future__ import annotations

import os
import weakref
from typing import Any

import torch

from tspec.runtime.live.checkpoints.counts import counts_of, first_tensors, tensors_of


class CheckpointFiles:
    """Remembers the files that were read, without their folders."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        """The names of loaded files with an optimizer that counts its updates."""
        self._states: list[tuple[weakref.ref[torch.Tensor], str]] = []
        """A tensor of each optimizer's state that was read, and the name of its file."""
        self._taken: set[str] = set()
        """The names of loaded files whose states were given to optimizers."""

    def read(self, value: Any, name: str) -> None:
        """A file held an optimizer that counts its updates."""
        self._names.add(name)
        self.holds_states(value, name)

    def holds_states(self, value: Any, name: str) -> None:
        """A file held states of optimizers."""
        self._states += [(weakref.ref(each), name) for each in first_tensors(value)]

    def is_taken(self, name: str) -> bool:
        """True if an optimizer took over a state from a file."""
        return name in self._taken

    def given(self, state: Any) -> None:
        """An optimizer takes a state over."""
        tensors = {id(each) for each in tensors_of(state)}
        self._taken.update(name for one, name in self._states if id(one()) in tensors)

    def goes_on_from(self, value: Any, file: Any) -> str:
        """The relation of the saved file to the one that the optimizer was loaded from.

        `own` if the names are equal and `other` if they differ. `none` if nothing was loaded, the
        file has no name, or no optimizer that counts its updates is saved.
        """
        name, names = file_name(file), self._taken or self._names
        if name is None or not names or not counts_of(value).updates:
            return "none"
        return "own" if name in names else "other"


def file_name(file: Any) -> str | None:
    """The name of a file without its folder; None of an open one."""
    return os.path.basename(os.fspath(file)) if isinstance(file, (str, os.PathLike)) else None
