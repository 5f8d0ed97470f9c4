"""The functions that are watched, and the classes whose methods are: also those that do not exist yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from types import FunctionType
from typing import Any

from tspec.runtime.live.instrument import dotted
from tspec.runtime.live.process import PROCESS, Into
from tspec.runtime.live.watched import CallTaker, Role, WatchedFunction, entrance


@dataclass(frozen=True, slots=True)
class _Method:
    """A method that is watched in a class and in all that override it."""

    base: type
    name: str
    role: Role


class WatchedFunctions:
    """Adds roles to functions, and intercepts calls of functions with roles."""

    def __init__(self, job: CallTaker) -> None:
        self._job = job
        self._watched: dict[int, tuple[Any, WatchedFunction]] = {}
        self._methods: list[_Method] = []
        self._waiting: list[Role] = []
        self._on_class: list[Callable[[type], None]] = []

    # --- asking --------------------------------------------------------------------------------------

    def watch_path(self, role: Role, leaving_out: frozenset[str] = frozenset()) -> None:
        """Watch the callable that `role.path` names (all but some of a family), as soon as it exists."""
        if role.path.endswith(".*"):
            places = list(dotted.members(role.path))
            for member in places:
                if member.path not in leaving_out:
                    key = f"{role.key}:{member.path}"
                    self._place(member, replace(role, key=key, path=member.path))
            if not places:
                self._waiting.append(role)
            return
        place = dotted.find(role.path)
        if place is None:
            self._waiting.append(role)
        else:
            self._place(place, role)

    def watch_method(self, base: type, name: str, role: Role) -> None:
        """Watch a method of a class and its overrides, also in subclasses that are defined later."""
        self._methods.append(_Method(base, name, role))
        for cls in _with_subclasses(base):
            self._own_method(cls, name, role)

    def watch_classes(self, listener: Callable[[type], None]) -> None:
        """Notify a listener of every class that is created from now on."""
        self._on_class.append(listener)

    def watch_function(self, function: Any, role: Role, method: bool = False) -> bool:
        """Add a role to a Python function; False if it cannot be exchanged.

        `method` says that calls take the instance first; a first parameter `self` says so too.
        """
        known = self._watched.get(id(function))
        if known is not None:
            known[1].add(role)
            return True
        if not isinstance(function, FunctionType):
            return False
        watched = WatchedFunction(function, method)
        watched.add(role)
        if not PROCESS.exchange(function, self._job, self._into(watched)):
            return False
        self._watched[id(function)] = (function, watched)
        return True

    def _into(self, watched: WatchedFunction) -> Into:
        return lambda original: entrance(self._job, watched, original)

    def defined(self, function: FunctionType) -> None:
        """A function of the script was just defined. An event may name its path."""
        short = {
            f"__main__.{function.__qualname__}",
            f"{dotted.script_name()}.{function.__qualname__}",
        }
        for role in [role for role in self._waiting if role.path in short]:
            self._waiting.remove(role)
            self.watch_function(function, role)

    def exchange(self, function: Any, into: Into) -> None:
        """Send a function's calls elsewhere, without roles."""
        PROCESS.exchange(function, self._job, into)

    def modules_changed(self) -> None:
        """Modules were imported: look again for functions that were not found before."""
        waiting, self._waiting = self._waiting, []
        for role in waiting:
            self.watch_path(role)

    @property
    def waiting(self) -> tuple[str, ...]:
        """Paths that have not been found."""
        return tuple(role.path for role in self._waiting)

    def forget(self) -> None:
        """The job has ended: nothing more is watched for it."""
        self._watched.clear()
        self._methods.clear()
        self._waiting.clear()
        self._on_class.clear()

    # --- doing ---------------------------------------------------------------------------------------

    def _place(self, place: dotted.Binding, role: Role) -> None:
        value = PROCESS.original(place)
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        if isinstance(place.holder, type):
            owner = next((c for c in place.holder.__mro__ if place.name in vars(c)), place.holder)
            if owner is not place.holder and isinstance(value, FunctionType):
                role = replace(role, guard=_both(role.guard, place.holder))
                self._method_everywhere(owner, place, value, role)
            elif isinstance(value, FunctionType):
                self.watch_method(place.holder, place.name, role)
            else:
                self._replace(place, role)
        elif isinstance(value, type):
            self.watch_method(value, "__init__", role)
        elif not self.watch_function(value, role):
            self._replace(place, role)

    def _method_everywhere(
        self, owner: type, place: dotted.Binding, value: FunctionType, role: Role
    ) -> None:
        """A method that the named class only inherits: calls on its instances count."""
        self.watch_function(value, role, method=True)
        self.watch_method(place.holder, place.name, role)

    def _own_method(self, cls: type, name: str, role: Role) -> None:
        function = vars(cls).get(name)
        if isinstance(function, (staticmethod, classmethod)):
            # Calls through an instance do not name it, and mechanisms need it.
            if role.listener is None:
                self.watch_function(function.__func__, role)
        elif function is not None:
            self.watch_function(function, role, method=True)

    def _replace(self, place: dotted.Binding, role: Role) -> None:
        """Builtins and other callables cannot be exchanged: their name is given to a function of ours."""
        original = PROCESS.original(place)
        known = self._watched.get(id(original))
        if known is not None:
            known[1].add(role)
            return
        if not callable(original):
            return
        watched = WatchedFunction(original, isinstance(place.holder, type))
        watched.add(role)
        PROCESS.replace(place, original, self._job, self._into(watched))
        self._watched[id(original)] = (original, watched)

    def created(self, cls: type) -> None:
        """A class was just made."""
        own = vars(cls)
        for method in self._methods:
            if method.name in own and issubclass(cls, method.base):
                self._own_method(cls, method.name, method.role)
        for listener in self._on_class:
            listener(cls)
        short = f".{cls.__qualname__}."
        for role in [role for role in self._waiting if short in role.path]:
            holder, _, name = role.path.rpartition(".")
            if _is_named(cls, holder) and hasattr(cls, name):
                self._waiting.remove(role)
                self._place(dotted.Binding(cls, name, role.path), role)


def _is_named(cls: type, path: str) -> bool:
    """The path names the class: in its module, in the script, or where its package passes it on."""
    if not path.endswith(f".{cls.__qualname__}"):
        return False
    module = path.removesuffix(f".{cls.__qualname__}")
    if cls.__module__ in ("__main__", "__mp_main__"):
        return module in ("__main__", dotted.script_name())
    return cls.__module__ == module or cls.__module__.startswith(f"{module}.")


def _with_subclasses(base: type) -> Iterator[type]:
    seen: set[type] = {base}
    queue: list[type] = [base]
    while queue:
        cls = queue.pop()
        yield cls
        subclasses: list[type] = type.__subclasses__(cls)
        for below in subclasses:
            if below not in seen:
                seen.add(below)
                queue.append(below)


def _both(guard: Callable[[Any], bool] | None, base: type) -> Callable[[Any], bool]:
    return lambda thing: isinstance(thing, base) and (guard is None or guard(thing))
