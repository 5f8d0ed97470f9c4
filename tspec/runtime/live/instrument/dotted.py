"""From a dotted path to the object that it names, among the modules that are loaded."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

SLOW = (
    "torch.distributed.checkpoint",
    "torch.distributed.fsdp",
    "torch.distributed.pipelining",
)
"""Public packages of torch that take long to import: they are waited for, as private ones are."""


@dataclass(frozen=True, slots=True)
class Binding:
    """The place that binds a callable: an attribute of a module or class."""

    holder: Any
    name: str
    path: str

    @property
    def value(self) -> Any:
        """The object bound there, without binding it to an instance; None if there is none."""
        return inspect.getattr_static(self.holder, self.name, None)


def script_name() -> str | None:
    """The name under which the running script would be imported: `train` for `train.py`, `a.b` for `-m a.b`."""
    main = sys.modules.get("__main__")
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name)
    path = getattr(main, "__file__", None)
    if not path:
        return None
    return str(path).replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".py")


def find(path: str) -> Binding | None:
    """The place of `a.b.C.method`, or None as long as its module is not loaded.

    A path may begin with `__main__` or the script's own name. Public submodules of torch are
    imported if need be. Private ones and `SLOW` ones are waited for: `torch._dynamo` takes seconds to import.
    """
    parts = path.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        module = _module(".".join(parts[:cut]))
        if module is None:
            continue
        holder: Any = module
        for part in parts[cut:-1]:
            holder = _member(holder, part)
            if holder is None:
                break
        else:
            if _member(holder, parts[-1]) is not None:
                return Binding(holder, parts[-1], path)
    return None


def _member(holder: Any, name: str) -> Any:
    """A member of a holder.

    Modules are only asked for loaded members, since some load the rest on access.
    """
    if isinstance(holder, ModuleType) and not holder.__name__.startswith("torch"):
        return vars(holder).get(name)
    return inspect.getattr_static(holder, name, None)


def _module(name: str) -> ModuleType | None:
    loaded = sys.modules.get(name)
    if loaded is None and name == script_name():
        loaded = sys.modules.get("__main__")
    package, *inner = name.split(".")
    is_waited_for = name.startswith(SLOW) or any(part.startswith("_") for part in inner)
    if loaded is None and package == "torch" and package in sys.modules and not is_waited_for:
        try:
            loaded = importlib.import_module(name)
        except ImportError:
            return None
    return loaded


def members(path: str) -> Iterator[Binding]:
    """The public functions of an open family `a.b.*`, in order of their names."""
    module = _module(path.removesuffix(".*"))
    if module is None:
        return
    for name in sorted(vars(module)):
        value = vars(module)[name]
        if name.startswith(("_", "has_torch_function", "handle_torch_function")):
            continue
        if isinstance(value, (type, ModuleType)):
            continue
        if callable(value) and _belongs(value, module):
            yield Binding(module, name, f"{module.__name__}.{name}")


def _belongs(value: Any, module: ModuleType) -> bool:
    """Functions of other modules (typing's, torch's own tools) that only were imported do not count."""
    home = getattr(value, "__module__", None)
    if not isinstance(value, FunctionType):
        return home is None or str(home).startswith("torch")
    return home in (module.__name__, "torch._jit_internal", "torch.functional")


def spellings(cls: type) -> str:
    """A class as a string: its dotted paths along the method resolution order, the most derived first.

    Both the path where it is defined and the shorter one under which it is known
    (`torch.nn.modules.conv.Conv2d`, `torch.nn.Conv2d`).
    """
    words: list[str] = []
    for base in cls.__mro__[:-1]:
        for word in _paths(base):
            if word not in words:
                words.append(word)
    return " ".join(words)


def _paths(cls: type) -> list[str]:
    module = cls.__module__
    if module in ("__main__", "__mp_main__"):
        module = script_name() or "__main__"
    path = f"{module}.{cls.__qualname__}"
    words = []
    parts = module.split(".")
    for cut in range(1, len(parts)):
        package = sys.modules.get(".".join(parts[:cut]))
        if package is not None and vars(package).get(cls.__name__) is cls:
            words.append(f"{'.'.join(parts[:cut])}.{cls.__name__}")
    return [*words, path]
