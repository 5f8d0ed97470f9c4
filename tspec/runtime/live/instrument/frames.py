"""Separates tspec's frames of a stack from the script's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any, TypeVar

from tspec.runtime.live.instrument.swap import PREFIX

ROOM = 66_000
"""Words. The piece of memory for a frame is the next power of two; nearly half of it is left to other frames."""
F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

PACKAGE = f"{Path(__file__).resolve().parents[3]}/"
"""The folder of tspec's code."""


def is_ours(code: CodeType) -> bool:
    """True if the code is tspec's, or replaces that of a watched function."""
    names = code.co_names
    return code.co_filename.startswith(PACKAGE) or bool(names and names[0].startswith(PREFIX))


def with_room(function: F) -> F:
    """Give a function a frame so large that the frames of all calls within it lie in one piece of memory with its own.

    CPython (`push_chunk` in pystate.c) maps frames in pieces of 16 KB. A call that begins a new piece maps it, and
    unmaps it when it returns, and so does each later call from the same depth. Frames of tspec make the stack of a job
    deeper, so that such a depth may be that of a model's layers. The large frame needs 528 KB, so CPython maps a piece
    of 1 MB. Only pages that are used take memory.
    """
    code: CodeType = function.__code__
    function.__code__ = code.replace(co_stacksize=code.co_stacksize + ROOM)
    return function


@with_room
def call_with_room(function: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    """Call a function within which all frames find room."""
    return function(*args, **kwargs)


@with_room
def run_main(code: CodeType, namespace: dict[str, Any]) -> None:
    """Run a script. Without tspec, no frame is outside of the script's own."""
    exec(code, namespace)
