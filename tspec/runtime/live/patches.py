"""What is replaced while a job is watched, and how it all comes back at the end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

_MISSING = object()


class _Names:
    """Which modules know which builtins, as long as no other module is loaded."""

    __slots__ = ("_loaded", "_modules")

    def __init__(self) -> None:
        self._loaded = -1
        self._modules: dict[int, list[Any]] = {}

    def of(self, builtin: Any) -> list[Any]:
        """The modules in which some name is bound to it."""
        if len(sys.modules) != self._loaded:
            self._loaded = len(sys.modules)
            self._modules = {}
            for module in list(sys.modules.values()):
                if isinstance(module, ModuleType):
                    for held in list(vars(module).values()):
                        if callable(held):
                            self._modules.setdefault(id(held), []).append(module)
        return self._modules.get(id(builtin), [])


class Patches:
    """Replaced attributes, in order. `restore` undoes them, the latest first.

    An attribute that somebody else replaced in between is left alone: what was put there lets
    calls through once the job has ended.
    """

    __slots__ = ("_names", "_undo")

    def __init__(self) -> None:
        self._undo: list[Callable[[], None]] = []
        self._names: _Names | None = None

    @contextmanager
    def indexed(self) -> Iterator[None]:
        """Many replacements in a row: the modules' names are looked through once for all of them."""
        self._names = _Names()
        try:
            yield
        finally:
            self._names = None

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
        modules = list(sys.modules.values()) if self._names is None else self._names.of(original)
        for module in modules:
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
