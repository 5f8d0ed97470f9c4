"""The open calls and the state of one thread of the job."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch.utils import _python_dispatch

from tspec.runtime.edges import WatchedCall

OURS = "tspec"
"""The name of threads that do tspec's own work."""


class ThreadState(threading.local):
    """The watched calls of one job that are open on the current thread."""

    def __init__(self) -> None:
        self.stack: list[WatchedCall] = []
        """Open calls of events, the innermost last."""
        self.frames: list[tuple[int, frozenset[tuple[bool, str]]]] = []
        """First argument and roles of the functions that are open."""
        self.modules = 0
        """The number of modules with an open forward pass."""


class ReentrancyGuard(threading.local):
    """The flag that tspec's own code is running on the current thread. No job sees the calls of
    torch that it makes.
    """

    def __init__(self) -> None:
        self.on = threading.current_thread().name == OURS
        self.isolated = False
        """Isolated work is running on this thread: nested work needs no isolation of its own."""


class UnseenCalls:
    """Calls of torch on this thread are seen by no job within the block, though they are not tspec's own."""

    __slots__ = ("_before", "_quiet")

    def __init__(self, quiet: ReentrancyGuard) -> None:
        self._quiet = quiet

    def __enter__(self) -> None:
        self._before, self._quiet.on = self._quiet.on, True

    def __exit__(self, *error: Any) -> None:
        self._quiet.on = self._before


class IsolatedWork:
    """A computation of tspec on this thread, isolated from the state of the job.

    Its calls are not watched. Modes of the job (a default device, a counter of operations, a trace)
    and transforms (`vmap`, `grad`) do not see its operations; they apply again afterwards.
    """

    __slots__ = ("_before", "_function", "_is_inner", "_modes", "_quiet")

    def __init__(self, quiet: ReentrancyGuard) -> None:
        self._quiet = quiet
        self._modes: AbstractContextManager[None] | None = None

    def __enter__(self) -> None:
        quiet = self._quiet
        self._is_inner = quiet.isolated
        if self._is_inner:
            return
        quiet.isolated = True
        self._before, quiet.on = quiet.on, True
        self._function = torch._C.DisableTorchFunction()
        self._function.__enter__()
        if torch._C._len_torch_dispatch_stack() or _in_transform() is not None:
            self._modes = _without_modes()
            self._modes.__enter__()

    def __exit__(self, *error: Any) -> None:
        if self._is_inner:
            return
        if self._modes is not None:
            self._modes.__exit__(None, None, None)
        self._function.__exit__(*error)
        self._quiet.on, self._quiet.isolated = self._before, False


_in_transform = torch._C._functorch.peek_interpreter_stack


@contextmanager
def _without_modes() -> Iterator[None]:
    """Leaves the transforms and dispatch modes that are open, and enters them again."""
    from torch._functorch import pyfunctorch  # slow, and few jobs need it

    left = []
    with pyfunctorch.temporarily_clear_interpreter_stack():
        try:
            while torch._C._len_torch_dispatch_stack():
                left.append(_python_dispatch._pop_mode())
            yield
        finally:
            while left:
                _python_dispatch._push_mode(left.pop())
