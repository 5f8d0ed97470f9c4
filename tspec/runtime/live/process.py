"""The functions that are exchanged in this process, once for all jobs followed in it.

Jobs begin and end in any order. A function has one *site* here, and each job that watches it has a
layer there. A call goes through the layers, latest first, and then to the original function. When
the last job ends, the process is as it was before the first.
"""

from __future__ import annotations

import builtins
import gc
import itertools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from types import FunctionType
from typing import Any
from weakref import WeakKeyDictionary, WeakSet

from tspec.runtime.live import departures, imports
from tspec.runtime.live.garbage import collected_less_often
from tspec.runtime.live.installation import Installation
from tspec.runtime.live.instrument import warn
from tspec.runtime.live.instrument.dotted import Binding
from tspec.runtime.live.instrument.patches import ModuleNames, ReplacedCallable, attribute, put_back
from tspec.runtime.live.instrument.swap import ExchangedCode
from tspec.runtime.live.instrument.threads import ReentrancyGuard

Into = Callable[[Callable[..., Any]], Callable[..., Any]]
"""From the previous callee to the new one."""


class _Site:
    """A callable that is exchanged, and the layers that its calls go through, the first one innermost."""

    __slots__ = ("at", "layers")

    def __init__(self, at: ExchangedCode | ReplacedCallable) -> None:
        self.at = at
        self.layers: tuple[tuple[object, Into], ...] = ()

    def take(self, layers: tuple[tuple[object, Into], ...]) -> None:
        """Send calls through these layers. Nothing changes if one of them cannot be made."""
        entry = self.at.target
        for _, into in layers:
            entry = into(entry)
        self.layers = layers
        self.at.direct(entry)


class InstrumentedProcess:
    """The owner of everything that jobs exchange in this process."""

    def __init__(self) -> None:
        self.jobs: tuple[Installation, ...] = ()
        """The followed jobs, in the order in which they began."""
        self.quiet = ReentrancyGuard()
        self.lock = threading.RLock()
        """Held while a job takes something in: one edge after the other, whichever thread it comes from."""
        self._structure = threading.RLock()
        self._sites: dict[int, _Site] = {}
        self._numbers = itertools.count()
        self._originals: WeakKeyDictionary[Callable[..., Any], Any] = WeakKeyDictionary()
        """Stand-ins that still exist, also of jobs that have ended."""
        self._released: WeakSet[Any] = WeakSet()
        """Owners that have ended; another thread may still be about to add a layer for one."""
        self._names: ModuleNames | None = None
        self._hooks = ExitStack()
        self._forks = False

    # --- jobs ------------------------------------------------------------------------------------

    def enter(self, job: Installation) -> None:
        """A job begins to exchange."""
        with self._structure:
            if not self.jobs:
                self._install()
            self.jobs += (job,)
            self._released.discard(job)

    def leave(self, job: Installation) -> None:
        """A job ends: restore the code that it alone had exchanged; after the last job, restore
        all.
        """
        with self._structure:
            if job not in self.jobs:
                return
            self.jobs = tuple(each for each in self.jobs if each is not job)
            with ExitStack() as last:
                if not self.jobs:
                    last.push(self._hooks.pop_all())
                self.release(job)

    @contextmanager
    def indexed(self) -> Iterator[None]:
        """Many callables are replaced in a row: the modules' names are read once for all of them."""
        self._names = ModuleNames()
        try:
            yield
        finally:
            self._names = None

    @contextmanager
    def without_collection(self) -> Iterator[None]:
        """Suspend garbage collection for the block.

        One thread at a time: another one that ends its own block would enable collection in this one.
        """
        with self._structure:
            collects = gc.isenabled()
            gc.disable()
            try:
                yield
            finally:
                if collects:
                    gc.enable()

    def _install(self) -> None:
        if not self._forks:
            os.register_at_fork(after_in_child=self._forked)
            self._forks = True
        with ExitStack() as hooks:
            hooks.enter_context(imports.followed(lambda: self.jobs))
            hooks.enter_context(self._class_creation())
            hooks.enter_context(warn.located())
            hooks.enter_context(collected_less_often())
            hooks.enter_context(departures.followed(lambda: self.jobs))
            self._hooks = hooks.pop_all()

    @contextmanager
    def _class_creation(self) -> Iterator[None]:
        original = builtins.__build_class__

        def build_class(*args: Any, **kwargs: Any) -> Any:
            created = original(*args, **kwargs)
            if isinstance(created, type):
                for job in self.jobs:
                    job.quietly(partial(job.functions.created, created))
            return created

        with attribute(builtins, "__build_class__", build_class):
            yield

    def _forked(self) -> None:
        """This process is a fork. Threads that held a lock are not in it."""
        self.lock = threading.RLock()
        self._structure = threading.RLock()
        self.quiet.on = self.quiet.isolated = False
        for job in self.jobs:
            if job.active:
                job.forked(None)

    # --- calls -----------------------------------------------------------------------------------

    def exchange(self, function: FunctionType, owner: object, into: Into) -> bool:
        """Send a function's calls through a layer of the owner; False if that cannot be."""
        with self._structure:
            if owner in self._released:
                return False
            site = self._sites.get(id(function))
            if site is None:
                try:
                    site = _Site(ExchangedCode(function, next(self._numbers)))
                except ValueError:
                    return False
            self._add(function, site, owner, into)
            return True

    def replace(self, place: Binding, original: Any, owner: object, into: Into) -> None:
        """Send the calls of something that is no Python function through a layer of the owner."""
        with self._structure:
            if owner in self._released:
                return
            site = self._sites.get(id(original))
            if site is not None:
                self._add(original, site, owner, into)
                return
            at = ReplacedCallable(original)
            try:
                self._originals[at.stand_in] = original
                self._add(original, _Site(at), owner, into)
                at.bind(place.holder, place.name, self._names)
            except BaseException:
                self._restore([_Site(at)])
                raise

    def original(self, place: Binding) -> Any:
        """The callable bound at a place, or the original if a stand-in is bound there.

        If other code kept the stand-in of an ended job and bound it again, the original is put
        back.
        """
        found = place.value
        held = found.__func__ if isinstance(found, staticmethod) else found
        original = self._originals.get(held) if isinstance(held, FunctionType) else None
        if original is None:
            return found
        site = self._sites.get(id(original))
        at = None if site is None else site.at
        if not isinstance(at, ReplacedCallable) or at.stand_in is not held:
            setattr(place.holder, place.name, original)
        return original

    def _add(self, thing: Any, site: _Site, owner: object, into: Into) -> None:
        try:
            site.take((*site.layers, (owner, into)))
        finally:
            if site.layers:
                self._sites[id(thing)] = site

    def release(self, owner: object) -> None:
        """Take all layers of an owner away."""
        with self._structure, ExitStack() as undo:
            self._released.add(owner)
            gone: list[_Site] = []
            undo.callback(self._restore, gone)
            for key, site in list(self._sites.items()):
                left = tuple(layer for layer in site.layers if layer[0] is not owner)
                if not left:
                    gone.append(self._sites.pop(key))
                elif len(left) < len(site.layers):
                    undo.callback(site.take, left)

    def _restore(self, gone: list[_Site]) -> None:
        replaced = [site.at for site in gone if isinstance(site.at, ReplacedCallable)]
        exchanged = [site.at for site in gone if isinstance(site.at, ExchangedCode)]
        with ExitStack() as undo:
            for each in exchanged:
                undo.callback(each.forget)
            undo.callback(_wait_for_calls, {id(each.trampoline) for each in exchanged})
            undo.callback(put_back, replaced)
            for site in gone:
                undo.callback(site.at.restore)


def _wait_for_calls(codes: set[int]) -> None:
    """Wait until no other thread is at the beginning of an exchanged code, before it has looked up its target."""
    own = threading.get_ident()
    for _ in range(1000):
        frames = [frame for thread, frame in sys._current_frames().items() if thread != own]
        if not any(id(frame.f_code) in codes for frame in frames):
            return
        time.sleep(0.0001)


PROCESS = InstrumentedProcess()
"""The single instance of this process, since functions, builtins and modules exist once."""
