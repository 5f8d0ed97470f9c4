"""Replacing a callable that has no code to exchange: a function of ours stands under all its names."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import CodeType, FunctionType, ModuleType
from typing import Any

import torch
from torch.jit import _builtins

from tspec.runtime.live.instrument.swap import PREFIX

_MISSING = object()


class ModuleNames:
    """What the names of loaded modules are bound to, for many callables in a row."""

    __slots__ = ("_held", "_loaded")

    def __init__(self) -> None:
        self._loaded = -1
        self._held: list[tuple[ModuleType, set[int]]] = []
        """Each loaded module, and the ids of the objects."""

    def of(self, held: Any) -> list[ModuleType]:
        """The modules in which some name is bound to `held`.

        Read again only after modules were loaded.
        """
        if len(sys.modules) != self._loaded:
            self._loaded = len(sys.modules)
            self._held = [(module, set(_ids(module))) for module in _modules()]
        wanted = id(held)
        return [module for module, ids in self._held if wanted in ids]


def _modules() -> Iterator[ModuleType]:
    return (each for each in list(sys.modules.values()) if isinstance(each, ModuleType))


def _ids(module: ModuleType) -> Iterator[int]:
    """The ids of what a module's names are bound to.

    All modules together have over a hundred thousand names, so no line of Python runs for each.
    """
    return map(id, list(vars(module).values()))


class ReplacedCallable:
    """Redirects calls of a callable to `stand_in`. A function is replaced under all names by which
    modules know it.

    `holder` is where it was found: in a class only that class's attribute is replaced.
    """

    __slots__ = ("_direct", "_of_class", "_operator", "original", "stand_in", "target")

    def __init__(self, original: Any) -> None:
        self.original = original
        self.target = _from_callers_line(original)
        """The callable that the last layer calls."""
        self.stand_in, self._direct = _stand_in(original)
        self._of_class: tuple[type, str, Any, Any] | None = None
        self._operator = _known_to_compiler(original, self.stand_in)

    def bind(self, holder: Any, name: str, names: ModuleNames | None = None) -> None:
        """Put the stand-in where the original is bound."""
        original = self.original
        if isinstance(holder, type):
            # An object that binds no instance, such as a `functools.partial`, must not bind one as
            # a stand-in either.
            binds = hasattr(type(original), "__get__")
            value = self.stand_in if binds else staticmethod(self.stand_in)
            self._of_class = (holder, name, vars(holder).get(name, _MISSING), value)
            setattr(holder, name, value)
            return
        wanted = id(original)
        found = (
            [module for module in _modules() if wanted in _ids(module)]
            if names is None
            else names.of(original)
        )
        for module in (holder, *found):
            for bound in [name for name, held in list(vars(module).items()) if held is original]:
                setattr(module, bound, self.stand_in)

    def direct(self, entry: Callable[..., Any]) -> None:
        """Send calls to `entry` from now on."""
        self._direct(entry)

    def restore(self) -> None:
        """Only calls pass from now on; names in modules are put back by `put_back`."""
        self._direct(self.original)
        if self._operator:
            _builtin_table().pop(id(self.stand_in), None)
        if self._of_class is None:
            return
        holder, name, before, value = self._of_class
        if vars(holder).get(name, _MISSING) is not value:
            return
        if before is _MISSING:
            delattr(holder, name)
        else:
            setattr(holder, name, before)


def put_back(sites: Iterable[ReplacedCallable]) -> None:
    """Bind every name in a loaded module that is bound to a stand-in to the original again.

    This includes modules that were imported in between. A name that other code has bound to another
    object is left alone.
    """
    back = {id(site.stand_in): site.original for site in sites}
    if not back:
        return
    for module in _modules():
        if back.keys().isdisjoint(_ids(module)):
            continue
        for name, value in list(vars(module).items()):
            if id(value) in back:
                setattr(module, name, back[id(value)])


@contextmanager
def attribute(holder: Any, name: str, value: Any) -> Iterator[None]:
    """Within the block, `holder.name` is `value`. A value that other code assigns in between is
    kept.
    """
    before = getattr(holder, name)
    setattr(holder, name, value)
    try:
        yield
    finally:
        if getattr(holder, name, None) is value:
            setattr(holder, name, before)


def _from_callers_line(original: Any) -> Callable[..., Any]:
    """Calls the original from a frame with the caller's file, line and globals.

    A warning of C code is one of the frame that called it, which would be a frame of tspec.
    """
    is_traced = torch.compiler.is_dynamo_compiling
    lines: dict[tuple[int, int], tuple[CodeType, Callable[..., Any]]] = {}

    def target(*args: Any, **kwargs: Any) -> Any:
        if is_traced():
            return original(*args, **kwargs)
        frame: Any = sys._getframe(1)
        while frame is not None and frame.f_code is not _STAND_IN:
            frame = frame.f_back
        frame = None if frame is None else frame.f_back
        if frame is None:
            return original(*args, **kwargs)
        code = frame.f_code
        key = (id(code), frame.f_lasti)
        known = lines.get(key)
        if known is None:
            if len(lines) >= _LINES:
                lines.clear()
            line = _AT_LINE.replace(
                co_filename=code.co_filename, co_firstlineno=frame.f_lineno, co_name=code.co_name
            )
            # The code is kept, so that no other gets its id.
            known = lines[key] = (code, FunctionType(line, frame.f_globals))
        return known[1](original, args, kwargs)

    return target


def _at_line(function: Any, args: Any, kwargs: Any) -> Any: return function(*args, **kwargs)  # fmt: skip


_AT_LINE = _at_line.__code__.replace(co_names=(f"{PREFIX}at_line__",))
"""The name is not used: it says that the code is tspec's."""
_LINES = 4096
"""The number of places for which calls of one callable are kept."""


def _stand_in(original: Any) -> tuple[Callable[..., Any], Callable[[Callable[..., Any]], None]]:
    """A function that looks like the original, and a function that sets the target of its calls."""
    entry = original

    def stand_in(*args: Any, **kwargs: Any) -> Any:
        return entry(*args, **kwargs)

    def direct(to: Callable[..., Any]) -> None:
        nonlocal entry
        entry = to

    for name in ("__name__", "__qualname__", "__module__", "__doc__"):
        if isinstance(getattr(original, name, None), str):
            setattr(stand_in, name, getattr(original, name))
    if not _is_found(original):
        stand_in.__qualname__ = stand_in.__name__  # pickle finds it where it is bound
    stand_in.__wrapped__ = original  # type: ignore[attr-defined]
    return stand_in, direct


def _is_found(original: Any) -> bool:
    """True if the original's module has it under its qualified name. Builtins of torch name a class
    that no module has.
    """
    found: Any = sys.modules.get(getattr(original, "__module__", None) or "")
    for part in getattr(original, "__qualname__", "").split("."):
        found = getattr(found, part, None)
    return found is original


_STAND_IN = _stand_in(None)[0].__code__


def _known_to_compiler(original: Any, stand_in: Any) -> bool:
    """`torch.jit.script` knows builtins as objects, and has no source of them to compile."""
    operator = _builtin_table().get(id(original))
    if operator is not None:
        _builtin_table()[id(stand_in)] = operator
    return operator is not None


def _builtin_table() -> dict[int, str]:
    table: dict[int, str] = _builtins._get_builtin_table()  # type: ignore[no-untyped-call]
    return table
