"""What is replaced while a job is watched, and how it all comes back at the end."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

_MISSING = object()


class Patches:
    """Replaced attributes, in order. `restore` undoes them, the latest first.

    An attribute that somebody else replaced in between is left alone: what was put there lets
    calls through once the job has ended.
    """

    __slots__ = ("_undo",)

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []

    def set(self, holder: Any, name: str, value: Any) -> None:
        """Replace `holder.name`, also where the holder only inherits it."""
        before = vars(holder).get(name, _MISSING)
        setattr(holder, name, value)

        def undo() -> None:
            if vars(holder).get(name, _MISSING) is not value:
                return
            if before is _MISSING:
                delattr(holder, name)
            else:
                setattr(holder, name, before)

        self._undo.append(undo)

    def set_everywhere(self, original: Any, value: Any) -> None:
        """Replace a function under all names by which loaded modules know it.

        So `from torch.nn.functional import dropout`, done before, is seen too.
        """
        for module in list(sys.modules.values()):
            self.set_in(module, original, value)

    def set_in(self, module: Any, original: Any, value: Any) -> None:
        """Replace a function under all its names in one module."""
        if type(module) is not ModuleType and not isinstance(module, ModuleType):
            return
        names = [name for name, held in list(vars(module).items()) if held is original]
        for name in names:
            self.set(module, name, value)

    def also(self, undo: Callable[[], None]) -> None:
        """Something else to undo at the end."""
        self._undo.append(undo)

    def restore(self) -> None:
        """Undo everything."""
        while self._undo:
            self._undo.pop()()
