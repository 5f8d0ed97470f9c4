"""One watched function: the roles that watch it, and the work around a call.

A *role* is one reason to watch a function: an event of the spec, or a mechanism of the live job
that follows the run. A call inside a call of the same roles on the same object (`super().step()`)
does not count again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import torch
from torch.fx import _symbolic_trace

from tspec.runtime.edges import WatchedCall
from tspec.runtime.live.arguments import CallSignature
from tspec.runtime.live.fields import FieldReader
from tspec.runtime.live.instrument.threads import ThreadState
from tspec.runtime.live.process import PROCESS
from tspec.runtime.live.watch import EventSpec

Arguments = tuple[Any, ...]
Guard = Callable[[Any], bool]
W = TypeVar("W")
"""What does the work of a role."""


class Listener:
    """A mechanism of the live job that is notified of a function's calls. The default methods do nothing."""

    def before(self, args: Arguments, kwargs: Mapping[str, Any]) -> Any:
        """The call is about to begin. The returned token is passed to the other methods."""
        return None

    def returned(self, token: Any, args: Arguments, kwargs: Mapping[str, Any], result: Any) -> None:
        """The call returned."""

    def ended(self, token: Any) -> None:
        """The call returned or raised."""


class ReturnListener(Listener):
    """Does something with a call's arguments when it has returned, and nothing when it raised."""

    def __init__(self, do: Callable[[Arguments, Mapping[str, Any]], None]) -> None:
        self._do = do

    def returned(self, token: Any, args: Arguments, kwargs: Mapping[str, Any], result: Any) -> None:
        """The call returned."""
        self._do(args, kwargs)


@dataclass(slots=True)
class Role:
    """One reason to look at a function. `guard` decides from the first argument whether the call
    counts.
    """

    key: str
    listener: Listener | None = None
    event: EventSpec | None = None
    path: str = ""
    guard: Guard | None = None
    reader: FieldReader | None = None
    hides: bool = False
    """Calls within this one are not seen."""
    once: bool = False
    """A call right inside of a call of the same event (`F.linear` in `Linear.forward`) is no second one."""
    room: bool = False
    """A call lasts for most of a step, so it is worth its time that the frames within it find room (`with_room`)."""

    name: str = field(init=False)
    """The event that a call is: in a family, the callable's own path."""

    def __post_init__(self) -> None:
        if self.event is None:
            self.name = self.key
        else:
            self.name = self.path if self.event.family else self.event.name

    def is_inner(self, stack: Sequence[WatchedCall]) -> bool:
        """True if a call within these calls does not count."""
        if self.once and stack[-1].event == self.key:
            return True
        if self.event is not None and self.event.outermost:
            name = self.name
            for call in stack:
                if call.event == name:
                    return True
        return False


def asked(
    roles: list[tuple[Role, W]], subject: Any, stack: Sequence[WatchedCall]
) -> list[tuple[Role, W]]:
    """The roles, each with what does its work, that look at a call with this first argument and these enclosing calls.

    One function, and no method of each role: it is run at every call of every module.
    """
    found = []
    for each in roles:
        role = each[0]
        guard = role.guard
        if (guard is None or guard(subject)) and not (stack and role.is_inner(stack)):
            found.append(each)
    return found


class WatchedFunction:
    """A function and its roles."""

    __slots__ = ("events", "hides", "keys", "listeners", "parameters", "roles", "room")

    def __init__(self, function: Callable[..., Any], method: bool = False) -> None:
        self.parameters = CallSignature(function, method)
        self.roles: list[Role] = []
        self.listeners: list[tuple[Role, Listener]] = []
        self.events: list[tuple[Role, FieldReader]] = []
        self.keys: frozenset[tuple[bool, str]] = frozenset()
        self.hides = self.room = False

    def add(self, role: Role) -> None:
        """Look at the function for one more reason."""
        key = (role.event is not None, role.key)  # an event may have the name of a mechanism
        if key in self.keys:
            return
        if role.event is not None:
            role.reader = FieldReader(role.event, role.path, self.parameters)
        self.roles.append(role)
        if role.listener is not None:
            self.listeners.append((role, role.listener))
        if role.reader is not None:
            self.events.append((role, role.reader))
        self.keys |= {key}
        self.hides |= role.hides
        self.room |= role.room

    def follows(self, args: Arguments, stack: Sequence[WatchedCall]) -> bool:
        """True if a mechanism looks at a call, or hides what is within it."""
        if self.hides:
            return True
        subject = args[0] if args else None
        return bool(asked(self.listeners, subject, stack))


class CallTaker(Protocol):
    """A job that takes the calls of watched functions."""

    @property
    def active(self) -> bool:
        """True from the job's start to its end."""

    @property
    def watches(self) -> bool:
        """Some sink takes the calls of the step that is open."""

    @property
    def threads(self) -> ThreadState:
        """The calls that are open on the current thread."""

    @property
    def fake_mode(self) -> Any:
        """The mode of fake tensors in which the whole job runs, or None."""

    def around(
        self,
        watched: WatchedFunction,
        original: Callable[..., Any],
        args: Arguments,
        kwargs: dict[str, Any],
    ) -> Any:
        """Make one call of a watched function, and notify its listeners."""


def entrance(
    job: CallTaker, watched: WatchedFunction, original: Callable[..., Any]
) -> Callable[..., Any]:
    """Takes the calls that go to `original`.

    Under a compiler, in tspec's own calls and where a method is given its instance by keyword, it
    only passes on.
    """
    quiet = PROCESS.quiet
    method = watched.parameters.method
    is_compiling = torch.compiler.is_compiling
    traced = tracing_check(job.fake_mode)

    def enter(*args: Any, **kwargs: Any) -> Any:
        if is_compiling() or not job.active:
            return original(*args, **kwargs)
        if not job.watches and not watched.follows(args, job.threads.stack):
            return original(*args, **kwargs)
        if traced():
            return original(*args, **kwargs)
        if quiet.on:
            return original(*args, **kwargs)
        frames = job.threads.frames
        if method and not args:
            return original(*args, **kwargs)
        subject = id(args[0]) if args else 0
        if frames and frames[-1][0] == subject and watched.keys <= frames[-1][1]:
            return original(*args, **kwargs)
        return job.around(watched, original, args, kwargs)

    return enter


def tracing_check(own: Any) -> Callable[[], bool]:
    """A function that tells whether a compiler is tracing the code, or a CUDA graph captures it: tspec's operations would
    become part of the trace, and a transfer of a result would end the capture with an error.

    `own` is the mode of fake tensors in which the whole job runs, if there is one.
    """
    keys = torch._C._TorchDispatchModeKey
    current = torch._C._get_dispatch_mode
    is_tracing = torch._C._is_tracing
    fake, proxy, is_symbolic = keys.FAKE, keys.PROXY, _symbolic_trace.is_fx_symbolic_tracing
    is_capturing = _capture_check()
    return lambda: (
        ((mode := current(fake)) is not None and mode is not own)
        or current(proxy) is not None
        or is_tracing()
        or is_symbolic()
        or is_capturing()
    )


def _capture_check() -> Callable[[], bool]:
    """A function that tells whether a CUDA graph captures the current stream. Without CUDA, torch's own raises."""
    return torch.cuda.is_current_stream_capturing if has_cuda() else lambda: False


def has_cuda() -> bool:
    """True if torch is built with CUDA and finds a GPU. Tests pretend that there is one."""
    built = torch.backends.cuda.is_built()  # type: ignore[no-untyped-call]
    return bool(built) and torch.cuda.is_available()
