"""Keeps the lines that warnings name the same as without tspec.

`warnings.warn(…, stacklevel=2)` counts frames, and a watched call has additional ones, those of
tspec.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import torch

from tspec.runtime.live.instrument.frames import is_ours, run_main
from tspec.runtime.live.instrument.patches import ReplacedCallable, put_back

BEYOND = 2**30
"""More frames than there are: the warning is one of no line."""


@contextmanager
def located() -> Iterator[None]:
    """Within the block, `warnings.warn` does not count frames of tspec."""
    original = warnings.warn
    is_traced = torch.compiler.is_dynamo_compiling

    def warn(
        message: Any,
        category: type[Warning] | None = None,
        stacklevel: int = 1,
        source: Any = None,
        **options: Any,
    ) -> None:
        if is_traced():
            return original(message, category, stacklevel, source, **options)
        prefixes = options.pop("skip_file_prefixes", ())
        level = _level(sys._getframe(2), stacklevel, prefixes)
        return original(message, category, level, source, **options)

    site = ReplacedCallable(original)
    try:
        site.bind(warnings, "warn")
        site.direct(warn)
        yield
    finally:
        site.restore()
        put_back([site])


def _level(frame: FrameType, stacklevel: int, prefixes: tuple[str, ...]) -> int:
    """The `stacklevel` with which `warn` reaches the frame that its caller, `frame`, meant."""
    level = 3  # `warn`, its stand-in, the caller
    left = max(stacklevel, 2 if prefixes else 1) - 1
    above: FrameType | None = frame
    while left > 0:
        above = None if above is None else above.f_back
        if above is None or above.f_code is run_main.__code__:
            return BEYOND
        filename = above.f_code.co_filename
        if "importlib" in filename and "_bootstrap" in filename:
            continue  # frames of the import system are counted nowhere
        level += 1
        if not is_ours(above.f_code) and not filename.startswith(prefixes):
            left -= 1
    return level
