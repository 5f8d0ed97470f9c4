"""Running a process to its end, as if it were this one: it gets the signals that are sent here."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

PASSED_ON = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2")
SAME = 0.2
"""Seconds in which a signal to a process group reaches all its processes."""
HEARD = "TSPEC_SIGNALS"
"""Environment variable: where the process writes the numbers of the signals that it gets, for `hear`."""
DIE_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of prctl(2)."""


@contextmanager
def supervised(arguments: Sequence[str]) -> Iterator[int]:
    """Run the interpreter with arguments to its end. The block gets its status, negative for a signal.

    In the block too, a signal does not end this process, which has yet to report; only an interrupt does.
    """
    reads, writes = os.pipe()
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    early: list[int] = []
    child: list[subprocess.Popen[bytes]] = []

    def pass_on(number: int, frame: FrameType | None) -> None:
        if not child:
            early.append(number)
        elif child[0].returncode is None:
            if not _has(reads, number):
                child[0].send_signal(number)
        elif number == signal.SIGINT:
            raise KeyboardInterrupt

    before = {
        number: signal.signal(number, pass_on)
        for number in (getattr(signal, name) for name in PASSED_ON)
        if signal.getsignal(number) not in (signal.SIG_IGN, None)
    }
    try:
        child.append(
            subprocess.Popen(
                [sys.executable, *flags, *arguments],
                env=os.environ | {HEARD: f"{os.getpid()}:{writes}"},
                pass_fds=(writes,),
            )
        )
        os.close(writes)
        for number in early:
            child[0].send_signal(number)
        yield child[0].wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(reads)


def _has(reads: int, number: int) -> bool:
    """True if the process got the signal too. A terminal sends it to all processes in the
    foreground.
    """
    while select.select([reads], [], [], SAME)[0]:
        got = os.read(reads, 1)
        if not got:
            return False
        if got[0] == number:
            return True
    return False


def follow_parent() -> None:
    """In the process itself: say which signals come, and end where the one that supervises it was killed."""
    parent, _, handle = os.environ.pop(HEARD).partition(":")
    writes = int(handle)
    os.set_inheritable(writes, False)
    os.set_blocking(writes, False)
    signal.set_wakeup_fd(writes, warn_on_full_buffer=False)
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(DIE_WITH_PARENT, int(signal.SIGKILL))
        if os.getppid() != int(parent):
            os.kill(os.getpid(), signal.SIGKILL)
