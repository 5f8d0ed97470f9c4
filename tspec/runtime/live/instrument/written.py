"""Reads from the source text how a program writes a call.

A parameter may be given its default value, or left out. Only the source shows the difference.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Sequence
from types import CodeType, FrameType, FunctionType
from typing import Any

import torch

from tspec.runtime.live.instrument.frames import is_ours

MOST = 256
"""The number of call sites of dropout without a graph that are remembered."""


class WrittenModes:
    """Reads from the source whether calls of `F.dropout` have an argument for `training`."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[CodeType, bool | None]] = {}
        """(code, instruction) -> the code and the answer. The code is kept, so that its id is not
        reused.
        """

    def mode_is_given(self, training: Any) -> bool | None:
        """True if the running call is written with an argument for `training`.

        None for a call that drops nothing or records a graph, and if the source does not show the
        call.
        """
        if not training or torch.is_grad_enabled():
            return None
        frame = _caller()
        if frame is None:
            return None
        key = (id(frame.f_code), frame.f_lasti)
        known = self._known.get(key)
        if known is None and len(self._known) < MOST:
            known = self._known[key] = (frame.f_code, _gives(frame, "training", 2))
        return None if known is None else known[1]


def _caller() -> FrameType | None:
    """The frame that called the watched function whose field is read."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_ours(frame.f_code):
        frame = frame.f_back
    return frame


def _gives(frame: FrameType, name: str, position: int) -> bool | None:
    """True if the watched call of a frame is written with an argument for a parameter; None if the
    source does not show it.
    """
    call = _call(frame)
    if call is None or not _is_watched(_value(call.func, frame)):
        return None
    if any(isinstance(each, ast.Starred) for each in call.args):
        return None
    keywords = {each.arg for each in call.keywords}
    return None if None in keywords else name in keywords or len(call.args) > position


def _call(frame: FrameType) -> ast.Call | None:
    """The call that a frame is in, from its source."""
    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)
    positions = list(frame.f_code.co_positions())[frame.f_lasti // 2]
    text = _between(lines, positions)
    try:
        parsed = None if text is None else ast.parse(f"({text})", mode="eval").body
    except (SyntaxError, ValueError):  # the file was changed since it was read
        return None
    return parsed if isinstance(parsed, ast.Call) else None


def _between(lines: Sequence[str], positions: tuple[int | None, ...]) -> str | None:
    """The text from a line and a byte of it to another, where these are known and there."""
    first, last, start, end = positions
    if first is None or last is None or start is None or end is None or last > len(lines):
        return None
    taken = [each.encode() for each in lines[first - 1 : last]]
    if not taken:
        return None
    taken[-1] = taken[-1][:end]
    taken[0] = taken[0][start:]
    return b"".join(taken).decode(errors="replace")


def _value(function: ast.expr, frame: FrameType) -> Any:
    """The object that a name, or an attribute of one, refers to in a frame; None for other
    expressions.
    """
    if isinstance(function, ast.Name):
        return frame.f_locals.get(function.id, frame.f_globals.get(function.id))
    if isinstance(function, ast.Attribute):
        holder = _value(function.value, frame)
        return vars(holder).get(function.attr) if hasattr(holder, "__dict__") else None
    return None


def _is_watched(function: Any) -> bool:
    """True if the object is a plain function whose calls tspec takes. A partial, which adds
    arguments of its own, is none.
    """
    return isinstance(function, FunctionType) and is_ours(function.__code__)
